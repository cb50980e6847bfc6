"""Recordings that `heedful transcribe` reads, and the forms and files in which it writes their transcripts."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.output import check_output, json_of_files, writing
from heedful.errors import InputError
from heedful.storage.paths import no_file

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.data.media.recordings import Recording
    from heedful.decode.transcriber import Transcriber
    from heedful.decode.transcript import Segment, Transcript

STDIN = "-"


class Form(StrEnum):
    """Forms in which `heedful transcribe` writes a transcript."""

    TEXT = "text"
    JSON = "json"
    SRT = "srt"
    VTT = "vtt"
    TSV = "tsv"


SINGLE = (Form.SRT, Form.VTT, Form.TSV)  # a file holds one transcript
ENDINGS = {Form.TEXT: ".txt"} | {form: f".{form}" for form in (Form.JSON, *SINGLE)}
FORM_OF_ENDING = {f".{form}": form for form in (Form.JSON, Form.SRT, Form.VTT)}  # .tsv is a table of files


@dataclass(frozen=True)
class Source:
    """A recording that is named on the command line or comes from standard input."""

    name: str
    sound: Path | bytes

    def opened(self, recipe: "Recipe") -> "Recording":
        """Open the recording, and read it to its end.

        Raises:
            InputError: It cannot be read.
        """
        from heedful.data.media.recordings import FileRecording, recording_of

        truncated = recipe.data.truncated_files == "read"
        recording = recording_of(self.sound, recipe.audio, truncated=truncated)
        if isinstance(recording, FileRecording):
            recording.check()
        return recording


def sources_of(names: Sequence[str]) -> list[Source]:
    """List the recordings that are named: files, those below folders, and what comes from standard input.

    Raises:
        InputError: There is no such file, or a folder holds no sound; the message has a line for each.
    """
    found: list[Source] = []
    problems = []
    for name in names:
        path = Path(name)
        if name == STDIN:
            found += from_stdin()
        elif path.is_dir():
            below = sounds_below(path)
            found += (Source(str(file), file) for file in below)
            problems += [] if below else [f"{name}: no file below this folder is a sound or a video"]
        elif path.is_file():
            found.append(Source(name, path))
        else:
            problems.append(no_file(path, "name a file of sound"))
    if problems:
        raise InputError("\n  ".join(problems))
    return found


def sounds_below(folder: Path) -> list[Path]:
    """List the files of sound, and the videos with sound, anywhere below a folder, by name."""
    from heedful.config.schema import DataConfig
    from heedful.data.media.media_files import files_below, other_files

    if others := other_files(folder, "audio"):
        typer.echo(f"heedful: {others}", err=True)
    return files_below(folder, DataConfig(modality="audio"))


def from_stdin() -> list[Source]:
    """Read standard input: a recording, or a list of names of files, one on a line.

    Raises:
        InputError: It is closed, or holds nothing.
    """
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    if not content:
        raise InputError("-: standard input is empty; send it a recording, or the names of files, one on a line")
    try:
        lines = [] if b"\0" in content else content.decode().splitlines()
    except UnicodeDecodeError:
        lines = []
    return [Source(line, Path(line)) for line in lines if line.strip()] or [Source("standard input", content)]


def readable(sources: Sequence[Source], recipe: "Recipe") -> tuple[list[Source], list[str], float]:
    """Read all recordings, to find those that cannot be read before the work begins.

    Returns:
        The others, what is wrong with the bad ones, and the seconds of all the others.
    """
    good, problems, seconds = [], [], 0.0
    for source in sources:
        try:
            seconds += source.opened(recipe).seconds
        except InputError as error:
            problems.append(str(error))
        else:
            good.append(source)
    return good, problems, seconds


class TranscriptFolder:
    """Folder with a file for each transcript, named as its recording.

    Args:
        folder: The folder, which is made if it is not there.
        sources: The recordings.
        form: The form of the files.

    Raises:
        InputError: A file is there that heedful did not write, two recordings have one name, or the folder cannot be
            made.
    """

    def __init__(self, folder: Path, sources: Sequence[Source], form: Form) -> None:
        stems = Counter(self._stem(source) for source in sources)
        ending = ENDINGS[form]
        self.paths = {
            source: folder / f"{stem if stems[stem := self._stem(source)] == 1 else Path(source.name).name}{ending}"
            for source in sources
        }
        twice = [path for path, count in Counter(self.paths.values()).items() if count > 1]
        if twice:
            raise InputError(f"--out {folder}: two recordings would be written as {twice[0].name}; rename one of them")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--out {folder}: cannot be made ({error.strerror or error})") from error
        inputs = [source.sound for source in sources if isinstance(source.sound, Path)]
        for path in self.paths.values():
            check_output(path, *inputs, option="--out")

    @staticmethod
    def _stem(source: Source) -> str:
        return Path(source.name).stem if isinstance(source.sound, Path) else "stdin"

    def write(self, source: Source, text: str) -> None:
        """Write the transcript of a recording.

        Raises:
            RunError: It cannot be written.
        """
        with writing(self.paths[source]) as stream:
            stream.write(f"{text}\n".encode(errors="surrogateescape"))


def written(name: str, transcript: "Transcript", form: Form, transcriber: "Transcriber") -> str:
    """Format a transcript, without the line feed at its end."""
    from heedful.decode.transcript import srt, tsv, vtt

    formats: dict[Form, Callable[[list[Segment]], str]] = {Form.SRT: srt, Form.VTT: vtt, Form.TSV: tsv}
    if form in formats:
        return formats[form](transcript.segments).removesuffix("\n")
    return json_line(name, transcript, transcriber) if form is Form.JSON else transcript.text


def json_line(name: str, transcript: "Transcript", transcriber: "Transcriber") -> str:
    """Format a transcript as a line of JSON: the file, its language and length, and the segments with their times."""
    segments = [
        {
            "start": round(segment.start, 3),
            "end": round(segment.end, 3),
            "text": segment.text,
            "pieces": transcriber.tokenizer.pieces(segment.tokens),
            "token_scores": segment.token_scores,
        }
        | ({"words": words_json(segment)} if segment.words else {})
        for segment in transcript.segments
    ]
    facts = {"file": name, "language": transcript.language, "seconds": round(transcript.seconds, 3)}
    return json_of_files({**facts, "text": transcript.text, "complete": transcript.complete, "segments": segments})


def words_json(segment: "Segment") -> list[dict[str, str | float]]:
    """Return the JSON fields of the words of a segment."""
    return [
        {"start": round(word.start, 3), "end": round(word.end, 3), "word": word.text, "score": word.score}
        for word in segment.words
    ]
