"""`heedful translate FILE...`: translate documents, each to a file next to it, and resume after an interruption."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from heedful.cli.output import check_output, writing
from heedful.documents.document import Segment, Tag, is_document, read_document
from heedful.errors import InputError, RunError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.document_translator import DocumentTranslator
    from heedful.predictors.translator import Translation

FORMAT = 1  # of the file that keeps the finished part of a translation


def documents_in(texts: Sequence[str] | None) -> list[Path]:
    """Return the documents that a command was given in place of texts; none if it was given texts."""
    files = [Path(text) for text in texts or () if len(text) < 4096 and "\n" not in text]
    documents = [path for path in files if is_document(path) and path.is_file()]
    if documents and len(documents) < len(texts or ()):
        other = next(text for text in texts or () if Path(text) not in documents)
        raise InputError(
            f"{documents[0]} is a document, but {other!r} is not one; translate texts with another command"
        )
    return documents


def check_document_options(document: Path, options: Mapping[str, object]) -> None:
    """Reject options that do not apply to documents: those of `options` with a value that is true."""
    for option, value in options.items():
        if value:
            raise InputError(
                f"{option} is for lines and tables, but {document} is translated as a document; leave it out"
            )


def output_paths(
    documents: Sequence[Path], output: Path | None, source: str, target: str, *, in_place: bool
) -> list[Path]:
    """Return the file to write for each document: by default a file next to it, with the language in its name."""
    if in_place:
        if output is not None:
            raise InputError(f"--output {output} and --in-place exclude each other; use only one of them")
        return list(documents)
    if output is not None and output.is_dir():
        paths = [output / path.name for path in documents]
        if len(set(paths)) < len(paths):
            raise InputError(f"--output {output}: two of the documents have the same name; translate them separately")
    elif output is not None:
        if len(documents) > 1:
            raise InputError(f"--output {output}: there are {len(documents)} documents; give an existing folder")
        if output.suffix.lower() != documents[0].suffix.lower():
            raise InputError(
                f"--output {output}: the format of {documents[0]} does not change; choose a name that ends in "
                f"{documents[0].suffix}"
            )
        paths = [output]
    else:
        language = "translated" if target == "tgt" else target
        paths = [
            path.with_name(f"{path.stem.removesuffix(f'.{source}')}.{language}{path.suffix}") for path in documents
        ]
    for document, path in zip(documents, paths, strict=True):
        check_output(path, document)
    return paths


@dataclass(frozen=True)
class DocumentTranslation:
    """Translation of documents by `heedful translate`.

    Attributes:
        translator: The translator of segments.
        identity: What translations depend on besides the document: the model and its settings.
    """

    translator: "DocumentTranslator"
    identity: Mapping[str, Any]

    def translate(self, source: Path, output: Path, note: "Callable[[Translation], object]") -> None:
        """Translate a document, and call `note` with the translation of each sentence.

        Finished segments are kept in a hidden file next to the output until the document is complete.
        """
        document = read_document(source)
        segments = list(document.segments)
        digest = hashlib.sha256("".join(map(_to_line, segments)).encode()).hexdigest()
        header = json.dumps({"format": FORMAT, "segments": digest, **self.identity}, sort_keys=True) + "\n"
        finished_part = output.with_name(f".{output.name}.translated")
        translations = _finished_segments(finished_part, header)
        sentences = [sum(1 for _ in self.translator.sentences(segment.text)) for segment in segments]
        done = sum(sentences[: len(translations)])
        with (
            _keeping(finished_part, header, translations) as stream,
            show_progress(f"translating {source}", "sentences", sum(sentences), done) as progress,
        ):
            remaining = segments[len(translations) :]
            for segment, parts in self.translator.translate_segments(remaining, done=progress.advance):
                translations.append(segment)
                stream.write(_to_line(segment))
                stream.flush()
                for part in parts:
                    note(part)
        with writing(output) as stream:
            stream.write(document.with_segments(translations))
        finished_part.unlink(missing_ok=True)
        typer.echo(f"{output}: {counted(sum(sentences), 'sentences')} translated", err=True)


def _finished_segments(path: Path, header: str) -> list[Segment]:
    """Read the segments that an interrupted command with the same header has translated."""
    try:
        first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if first != header:
            return []
        return [_from_line(line) for line in lines if line.endswith("\n")]  # the last line may be incomplete
    except (OSError, ValueError):
        return []


@contextmanager
def _keeping(path: Path, header: str, segments: Sequence[Segment]) -> Iterator[TextIO]:
    """Open the file for finished segments, and write those that are known."""
    try:
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines([header, *map(_to_line, segments)])
            yield stream
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def _to_line(segment: Segment) -> str:
    return f"{json.dumps(segment)}\n"


def _from_line(line: str) -> Segment:
    text, tags = json.loads(line)
    return Segment(text, tuple(Tag(*tag) for tag in tags))
