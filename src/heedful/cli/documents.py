"""`heedful translate FILE...`: translate documents, each to a file next to it, and resume after an interruption."""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from heedful.cli.inputs import warning_if_unknown
from heedful.cli.output import check_output, warn, writing
from heedful.documents.document import Segment, Tag, is_document, read_document
from heedful.errors import InputError, RunError
from heedful.progress import show_progress
from heedful.storage.atomic import named_write_errors
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.document_translator import DocumentTranslator
    from heedful.predictors.translator import Translation

FORMAT = 1  # of the file that keeps the finished part of a translation


def documents_in(texts: Sequence[str] | None) -> list[Path]:
    """Return the documents that a command was given in place of texts; none if it was given texts.

    A text without blanks that ends like the name of a document, such as notes.txt, is a document even if the file is
    missing: translating its name would hide the mistake.
    """
    texts = texts or ()
    documents = [
        Path(text) for text in texts if is_document(Path(text)) and (os.path.isfile(text) or not re.search(r"\s", text))
    ]
    if documents and len(documents) < len(texts):
        other = next(text for text in texts if Path(text) not in documents)
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


def warn_of_lines(source: Path | None) -> None:
    """Warn that the lines of a file are translated as they are, if its name is that of a document with markup."""
    if source and is_document(source) and source.suffix.lower() not in (".txt", ".json"):
        warn(
            f"--input {source}: each line is translated by itself, with its markup; to translate the file as a "
            f"document, run heedful translate {shlex.quote(str(source))}"
        )


def output_paths(
    documents: Sequence[Path], output: Path | None, source: str, target: str, *, in_place: bool
) -> list[Path]:
    """Return the file to write for each document: by default a file next to it, with the language in its name."""
    if in_place and output is not None:
        raise InputError(f"--output {output} and --in-place exclude each other; use only one of them")
    if in_place:
        paths = list(documents)
    elif output is not None and output.is_dir():
        paths = [output / path.name for path in documents]
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
        paths = [path.with_name(_translated_name(path, source, target)) for path in documents]
    sources: dict[Path, Path] = {}  # by the file to write, also if it has several names
    for document, path in zip(documents, paths, strict=True):
        other = sources.setdefault(path.resolve(), document)
        if other is not document:
            raise InputError(
                f"{document}: its translation would replace that of {other}, {path}; translate it separately"
            )
        if not in_place:
            check_output(path, document)
    return paths


def _translated_name(path: Path, source: str, target: str) -> str:
    """Return the name of a translation: page.de.html for page.html or page.en.html, and de.json for en.json."""
    language = "translated" if target == "tgt" else target
    stem = re.sub(rf"(?:^|\.){re.escape(source)}(?:[-_]\w+)?$", "", path.stem)
    return f"{stem}.{language}{path.suffix}" if stem else f"{language}{path.suffix}"


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
        from heedful.predictors.literal_preserving_translator import literals, outside

        document = read_document(source)
        segments = list(document.segments)
        words = ("".join(outside(segment.text, literals(segment.text))) for segment in segments)
        for _ in warning_if_unknown(words, self.translator.translator.tokenizers.source):
            pass
        digest = hashlib.sha256("".join(map(_to_line, segments)).encode()).hexdigest()
        header = json.dumps({"format": FORMAT, "segments": digest, **self.identity}, sort_keys=True) + "\n"
        path = output.with_name(f".{output.name}.translated")
        translations, stream = _open_finished(path, header)
        sentences = [sum(1 for _ in self.translator.sentences(segment.text)) for segment in segments]
        done = sum(sentences[: len(translations)])
        with stream, show_progress(f"translating {source}", "sentences", sum(sentences), done) as progress:
            remaining = segments[len(translations) :]
            for segment, parts in self.translator.translate_segments(remaining, done=progress.advance):
                translations.append(segment)
                with named_write_errors(path):
                    stream.write(_to_line(segment))
                    stream.flush()
                for part in parts:
                    note(part)
        with writing(output) as stream:
            stream.write(document.with_segments(translations))
        path.unlink(missing_ok=True)
        typer.echo(f"{output}: {counted(sum(sentences), 'sentences')} translated", err=True)


def _open_finished(path: Path, header: str) -> tuple[list[Segment], TextIO]:
    """Open the file of finished segments, and return those that a command with the same header has translated."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        lines = [line for line in lines if line.endswith("\n")]  # the last line may be incomplete
        segments = [_from_line(line) for line in lines[1:]] if lines[:1] == [header] else []
    except ValueError:  # not a file that this command wrote
        lines, segments = [], []
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from error
    with named_write_errors(path):
        if lines[:1] == [header]:
            stream = path.open("r+", encoding="utf-8", newline="\n")
            stream.truncate(sum(map(len, lines)))  # JSON without characters beyond ASCII
            stream.seek(0, os.SEEK_END)
        else:
            stream = path.open("w", encoding="utf-8", newline="\n")
            stream.write(header)
    return segments, stream


def _to_line(segment: Segment) -> str:
    return f"{json.dumps(segment)}\n"


def _from_line(line: str) -> Segment:
    text, tags = json.loads(line)
    return Segment(text, tuple(Tag(*tag) for tag in tags))
