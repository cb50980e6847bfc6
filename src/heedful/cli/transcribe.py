"""`heedful transcribe`: speech to text, plain or as subtitles."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.files import Channel, FileOptions, SkipBad, Truncated, check_bad_files
from heedful.cli.inputs import shows_bar
from heedful.cli.options import Beam, Device, Force, MaxExtra, Model, Output, Precision, folder_to_write, mirrored
from heedful.cli.output import Results, check_output, free_name, json_of_files, writing
from heedful.cli.tables import Answers, check_json_output, writing_file_answers
from heedful.cli.translate import load
from heedful.config.keys import KEYS
from heedful.errors import InputError, Interrupted
from heedful.progress import ProgressReporter, show_progress
from heedful.storage.paths import no_file
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.media.recordings import Recording
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.transcript import Segment, Transcript


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
        from heedful.media.recordings import FileRecording, recording_of

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
    from heedful.data.readers.media_files import files_below, other_files

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
    from heedful.predictors.transcript import srt, tsv, vtt

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


class SpeechTask(StrEnum):
    """What a Whisper writes: the words that are said, or their translation into English."""

    TRANSCRIBE = "transcribe"
    TRANSLATE = "translate"


def transcribe(
    file: Annotated[
        list[str],
        typer.Argument(
            help="Sounds or videos of any length, folders of them, or - for standard input: a recording, or names of "
            "files, one on a line.",
            show_default=False,
        ),
    ],
    model: Model,
    form: Annotated[
        Form | None,
        typer.Option(
            "--format",
            help="Format to write: a line of text or of JSON for each file; or subtitles or a table of one recording, "
            "of several with --out.",
            show_default="json, srt or vtt if --output ends so, otherwise text",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write a file for each recording into.", callback=folder_to_write, show_default=False
        ),
    ] = None,
    language: Annotated[str | None, mirrored(KEYS.transcribe.language)] = None,
    task: Annotated[SpeechTask | None, mirrored(KEYS.transcribe.task)] = None,
    initial_prompt: Annotated[str | None, mirrored(KEYS.transcribe.initial_prompt)] = None,
    word_timestamps: Annotated[
        bool, mirrored(KEYS.transcribe.word_timestamps, "--word-timestamps", more="Needs --format json.")
    ] = False,
    vad: Annotated[bool | None, mirrored(KEYS.transcribe.vad, "--vad/--no-vad")] = None,
    beam: Beam = None,
    max_extra: MaxExtra = None,
    output: Output = None,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    channel: Channel = None,
    device: Device = "auto",
    _force: Force = False,
    precision: Precision = "float32",
) -> None:
    r"""Write down the speech in files of sound; one file in, one line out: the file, a tab, and the text.

    An output file whose name ends in .csv, .tsv or .jsonl is a table with
    "file" and "text". On a line of other output, a tab or a line end in a name
    or a text is written as \t, \n or \r.

    Subtitles and JSON tell when each segment was said, if the model writes
    time stamps; else a segment is a part of the recording as long as the model
    reads at once. With --format json a line is {"file", "language", "seconds",
    "text", "complete", "segments": [{"start", "end", "text", "pieces", "token_scores"}]}.
    The score of a token is the natural logarithm of its probability.
    --format tsv has the start and end of each segment in milliseconds, and its
    text. With --word-timestamps segments have "words": [{"start", "end",
    "word", "score"}]. Files that cannot be read are named at the end.

    After Ctrl-C, what was heard so far is written; with --output, into a file
    that ends in .part; with --out, the recordings that are done.
    """
    from heedful.predictors.transcriber import Transcriber

    form = form or FORM_OF_ENDING.get(output.suffix.lower() if output else "", Form.TEXT)
    check_json_output(output, as_json=form is Form.JSON)
    if out and output:
        raise InputError("--output is one file for all recordings, and --out a folder with a file for each; give one")
    reading = FileOptions(skip_bad, truncated, channel)
    loaded = reading.applied(model, load(model, device, precision))
    transcriber = loaded.use_as(Transcriber)
    named = sources_of(file)
    if word_timestamps and form is not Form.JSON:
        raise InputError("--word-timestamps are written in JSON: add --format json")
    if form in SINGLE and len(named) > 1 and out is None:
        raise InputError(
            f"--format {form}: is for one recording, and there are {len(named)}; --out FOLDER has a file for each"
        )
    check_output(output, *(source.sound for source in named if isinstance(source.sound, Path)))
    folder = TranscriptFolder(out, named, form) if out else None
    sources, bad, seconds = readable(named, transcriber.settings)
    options: dict[str, Any] = {}
    if transcriber.settings.transcribe.timestamps != "never":  # as of a model that has learned none
        options["timestamps"] = "long" if form is Form.TEXT else "always"
    given = {"beam": beam, "language": language, "max_extra": max_extra, "task": task, "vad": vad}
    given |= {"initial_prompt": initial_prompt, "word_timestamps": word_timestamps or None}
    options |= {key: value for key, value in given.items() if value is not None}
    transcriber = transcriber.with_options(**options)
    notes = Notes()
    with (
        show_progress("transcribing", "seconds of sound", int(seconds), bar=shows_bar(output)) as progress,
        nullcontext() if folder else writing_file_answers(output, ("text",) if form is Form.TEXT else ()) as results,
    ):
        for source, transcript in each_transcript(transcriber, sources, form, results, output, progress):
            notes.add(source, transcript)
            if folder:
                folder.write(source, written(source.name, transcript, form, transcriber))
            elif results:
                write(results, source.name, transcript, form, transcriber)
    notes.tell(transcriber)
    check_bad_files(bad, len(named), skip_bad=skip_bad)


class Notes:
    """What a user has to know of the transcripts: which were cut, and which are empty."""

    def __init__(self) -> None:
        from heedful.predictors.outputs import CutOutputs

        self._cut = CutOutputs()
        self._empty: list[str] = []

    def add(self, source: Source, transcript: "Transcript") -> None:
        """Look at a transcript."""
        self._cut.count(transcript.complete)
        if not transcript.segments:
            self._empty.append(source.name)

    def tell(self, transcriber: "Transcriber") -> None:
        """Report what was noticed on standard error."""
        if line := self._cut.line(transcriber.settings.decode, transcriber.model.max_target_positions(), "--max-extra"):
            typer.echo(f"heedful: {line}", err=True)
        if self._empty:
            remedy = "; --no-vad transcribes them all the same" if transcriber.settings.transcribe.vad else ""
            names = ", ".join(self._empty)
            typer.echo(
                f"heedful: no speech was detected in {counted(len(self._empty), 'files')}{remedy}: {names}", err=True
            )


def each_transcript(
    transcriber: "Transcriber",
    sources: "Sequence[Source]",
    form: Form,
    results: Answers | None,
    output: Path | None,
    progress: ProgressReporter,
) -> "Iterator[tuple[Source, Transcript]]":
    """Transcribe recordings one after another; after Ctrl-C, keep what was heard so far.

    Args:
        transcriber: What transcribes them.
        sources: The recordings.
        form: The form of what is kept.
        results: Where transcripts are written; None: each into a file.
        output: The file that they are written for; None: standard output.
        progress: Receives the seconds that are done.

    Raises:
        Interrupted: The user pressed Ctrl-C.
    """
    found = transcriber.transcribe_each([source.sound for source in sources], done=progress.advance)
    rest = iter(sources)
    done = 0
    try:
        for transcript in found:
            yield next(rest), transcript
            done += 1
    except KeyboardInterrupt as error:
        if results is None:
            raise Interrupted(f"interrupted; {counted(done, 'files')} of {len(sources):,} are done") from error
        waiting = found.heard()
        last = max((place for place, transcript in enumerate(waiting, start=1) if transcript.seconds), default=0)
        heard = list(zip((source.name for source in rest), waiting[:last], strict=False))
        for name, transcript in heard:
            write(results, name, transcript, form, transcriber)
        raise Interrupted(kept(results.results, output, heard)) from error


def write(results: Answers, name: str, transcript: "Transcript", form: Form, transcriber: "Transcriber") -> None:
    """Write the transcript of a recording among those of others: as text, the name, a tab and the text."""
    if form is Form.TEXT:
        results.write_file(name, transcript.text, {"text": transcript.text})
    else:
        results.write_line(written(name, transcript, form, transcriber))


def kept(results: Results, output: Path | None, heard: "Sequence[tuple[str, Transcript]]") -> str:
    """Keep what was heard before Ctrl-C; return a message with its place and its end.

    Args:
        results: What was written so far, of whole files and of others.
        output: The file that it was written for; None: standard output.
        heard: The files that were not heard to their end, with what was said in them.
    """
    from heedful.predictors.transcript import clock

    part = free_name(output)
    if not results.lines:
        return f"interrupted before anything was heard{'; nothing is written' if part else ''}"
    ends = [f"{path} was heard until {clock(transcript.seconds)}" for path, transcript in heard]
    if whole := results.lines - len(heard):
        ends.insert(0, "the first file is done" if whole == 1 else f"the first {whole:,} files are done")
    if part is None:
        return f"interrupted; {', '.join(ends)}"
    results.keep_whole(part)
    return f"interrupted; {part} has what was heard, and {output} is as it was; {', '.join(ends)}"
