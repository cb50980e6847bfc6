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

from heedful.cli.answering import load, settings, warn_of_cut_outputs
from heedful.cli.files import Channel, FileOptions, SkipBad, Truncated, check_bad_files
from heedful.cli.inputs import TextRows, shows_bar
from heedful.cli.options import Beam, Device, Force, MaxExtra, Model, Output, Precision, folder_to_write, mirrored
from heedful.cli.output import (
    Results,
    check_json_output,
    check_output,
    file_line,
    free_name,
    json_of_files,
    writing,
    writing_answers,
)
from heedful.config.keys import KEYS
from heedful.config.schema import DataConfig, Recipe
from heedful.errors import InputError, Interrupted
from heedful.progress import show_progress
from heedful.storage.paths import no_file
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.media.recordings import Recording
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.transcript import Segment, Transcript


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    SRT = "srt"
    VTT = "vtt"
    TSV = "tsv"


SINGLE = (Form.SRT, Form.VTT, Form.TSV)  # a file holds one transcript
FORM_OF_ENDING = {f".{form}": form for form in (Form.JSON, Form.SRT, Form.VTT)}  # .tsv is a table of files


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
    from heedful.predictors.outputs import CutOutputs
    from heedful.predictors.transcriber import Transcriber

    form = form or FORM_OF_ENDING.get(output.suffix.lower() if output else "", Form.TEXT)
    check_json_output(output, as_json=form is Form.JSON)
    if out and output:
        raise InputError("--output is one file for all recordings, and --out a folder with a file for each; give one")
    loaded = FileOptions(skip_bad, truncated, channel).applied(model, load(model, device, precision))
    transcriber = loaded.use_as(Transcriber)
    sources = sources_of(file)
    if word_timestamps and form is not Form.JSON:
        raise InputError("--word-timestamps are written in JSON: add --format json")
    if form in SINGLE and len(sources) > 1 and out is None:
        raise InputError(
            f"--format {form}: is for one recording, and there are {len(sources)}; --out FOLDER has a file for each"
        )
    check_output(output, *(source.sound for source in sources if isinstance(source.sound, Path)))
    paths = transcript_paths(out, sources, form) if out else {}

    good, bad, seconds = readable(sources, transcriber.settings)
    options = settings(
        beam=beam,
        language=language,
        max_extra=max_extra,
        task=task,
        vad=vad,
        initial_prompt=initial_prompt,
        word_timestamps=word_timestamps or None,
    )
    if transcriber.settings.transcribe.timestamps != "never":  # as of a model that has learned none
        options["timestamps"] = "long" if form is Form.TEXT else "always"
    transcriber = transcriber.with_options(**options)

    rows = TextRows(iter(()), None, "file", ("file",))
    columns = ("text",) if form is Form.TEXT else ()
    cut, silent = CutOutputs(), []
    with (
        show_progress("transcribing", "seconds of sound", int(seconds), bar=shows_bar(output)) as progress,
        nullcontext() if out else writing_answers(output, None, rows, columns) as results,
    ):
        for source, transcript in each_transcript(transcriber, good, form, results, output, progress.advance):
            write(source, transcript, form, transcriber, results or paths)
            cut.count(transcript.complete)
            if not transcript.segments:
                silent.append(source.name)
    warn_of_cut_outputs(cut, transcriber.settings.decode, transcriber.model.max_target_positions())
    if silent:
        remedy = "; --no-vad transcribes them all the same" if transcriber.settings.transcribe.vad else ""
        typer.echo(
            f"heedful: no speech was detected in {counted(len(silent), 'files')}{remedy}: {', '.join(silent)}", err=True
        )
    check_bad_files(bad, len(sources), skip_bad=skip_bad)


@dataclass(frozen=True)
class Source:
    """A recording that is named on the command line or comes from standard input."""

    name: str
    sound: Path | bytes

    def opened(self, recipe: "Recipe") -> "Recording":
        """Open the recording, and read it to its end."""
        from heedful.media.recordings import FileRecording, recording_of

        truncated = recipe.data.truncated_files == "read"
        recording = recording_of(self.sound, recipe.audio, truncated=truncated)
        if isinstance(recording, FileRecording):
            recording.check()
        return recording


def sources_of(names: Sequence[str]) -> list[Source]:
    """List the recordings that are named: files, those below folders, and what comes from standard input."""
    from heedful.data.readers.media_files import files_below, other_files

    sources: list[Source] = []
    problems = []
    for name in names:
        path = Path(name)
        if name == "-":
            sources += sources_on_stdin()
        elif path.is_dir():
            if others := other_files(path, "audio"):
                typer.echo(f"heedful: {others}", err=True)
            if files := files_below(path, DataConfig(modality="audio")):
                sources += (Source(str(file), file) for file in files)
            else:
                problems.append(f"{name}: no file below this folder is a sound or a video")
        elif path.is_file():
            sources.append(Source(name, path))
        else:
            problems.append(no_file(path, "name a file of sound"))
    if problems:
        raise InputError("\n  ".join(problems))
    return sources


def sources_on_stdin() -> list[Source]:
    """Read standard input: a recording, or a list of names of files, one on a line."""
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    if not content:
        raise InputError("-: standard input is empty; send it a recording, or the names of files, one on a line")
    try:
        lines = [] if b"\0" in content else content.decode().splitlines()
    except UnicodeDecodeError:
        lines = []
    return [Source(line, Path(line)) for line in lines if line.strip()] or [Source("standard input", content)]


def readable(sources: Sequence[Source], recipe: "Recipe") -> tuple[list[Source], list[str], float]:
    """Read all recordings before the work begins; return the good ones, what is wrong with others, and the seconds."""
    good, problems, seconds = [], [], 0.0
    for source in sources:
        try:
            seconds += source.opened(recipe).seconds
        except InputError as error:
            problems.append(str(error))
        else:
            good.append(source)
    return good, problems, seconds


def transcript_paths(folder: Path, sources: Sequence[Source], form: Form) -> dict[Source, Path]:
    """Make a folder for a file for each transcript, and name these as the recordings."""
    stems = {source: Path(source.name).stem if isinstance(source.sound, Path) else "stdin" for source in sources}
    times = Counter(stems[source] for source in sources)
    ending = ".txt" if form is Form.TEXT else f".{form}"
    paths = {
        source: folder / f"{stem if times[stem] == 1 else Path(source.name).name}{ending}"
        for source, stem in stems.items()
    }
    if twice := [path for path, count in Counter(paths.values()).items() if count > 1]:
        raise InputError(f"--out {folder}: two recordings would be written as {twice[0].name}; rename one of them")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be made ({error.strerror or error})") from error
    inputs = [source.sound for source in sources if isinstance(source.sound, Path)]
    for path in paths.values():
        check_output(path, *inputs, option="--out")
    return paths


def each_transcript(
    transcriber: "Transcriber",
    sources: Sequence[Source],
    form: Form,
    results: Results | None,
    output: Path | None,
    advance: Callable[[int], object],
) -> "Iterator[tuple[Source, Transcript]]":
    """Transcribe recordings one after another; after Ctrl-C, what was heard so far is among the results, if any."""
    transcripts = transcriber.transcribe_each([source.sound for source in sources], done=advance)
    done = 0
    try:
        for transcript in transcripts:
            yield sources[done], transcript
            done += 1
    except KeyboardInterrupt as error:
        if results is None:
            raise Interrupted(f"interrupted; {counted(done, 'files')} of {len(sources):,} are done") from error
        waiting = transcripts.heard()
        last = max((place for place, transcript in enumerate(waiting, start=1) if transcript.seconds), default=0)
        heard = list(zip(sources[done:], waiting[:last], strict=False))
        for source, transcript in heard:
            write(source, transcript, form, transcriber, results)
        raise Interrupted(keep_heard(results, output, heard)) from error


def write(
    source: Source,
    transcript: "Transcript",
    form: Form,
    transcriber: "Transcriber",
    place: Results | dict[Source, Path],
) -> None:
    """Write a transcript into a file of its own, or among those of others: as text, the name, a tab and the text."""
    content = formatted(source.name, transcript, form, transcriber)
    if isinstance(place, dict):
        with writing(place[source]) as stream:
            stream.write(f"{content}\n".encode(errors="surrogateescape"))
    elif form is Form.TEXT:
        place.write_answer([source.name], file_line(source.name, content), {"text": content})
    else:
        place.write(content)


def formatted(name: str, transcript: "Transcript", form: Form, transcriber: "Transcriber") -> str:
    from heedful.predictors.transcript import srt, tsv, vtt

    formats: dict[Form, Callable[[list[Segment]], str]] = {Form.SRT: srt, Form.VTT: vtt, Form.TSV: tsv}
    if form in formats:
        return formats[form](transcript.segments).removesuffix("\n")
    return json_line(name, transcript, transcriber) if form is Form.JSON else transcript.text


def json_line(name: str, transcript: "Transcript", transcriber: "Transcriber") -> str:
    """Format a transcript as a line of JSON: the file, its language and length, and the segments with their times."""

    def fields(segment: "Segment") -> dict[str, Any]:
        words = [
            {"start": round(word.start, 3), "end": round(word.end, 3), "word": word.text, "score": word.score}
            for word in segment.words
        ]
        return {
            "start": round(segment.start, 3),
            "end": round(segment.end, 3),
            "text": segment.text,
            "pieces": transcriber.tokenizer.pieces(segment.tokens),
            "token_scores": segment.token_scores,
        } | ({"words": words} if words else {})

    facts = {"file": name, "language": transcript.language, "seconds": round(transcript.seconds, 3)}
    segments = [fields(segment) for segment in transcript.segments]
    return json_of_files({**facts, "text": transcript.text, "complete": transcript.complete, "segments": segments})


def keep_heard(results: Results, output: Path | None, heard: "Sequence[tuple[Source, Transcript]]") -> str:
    """Keep what was heard before Ctrl-C; return a message with its place and its end.

    `heard` are the files that were not heard to their end, with what was said in them; they are among the results.
    """
    from heedful.predictors.transcript import clock

    part = free_name(output)
    if not results.lines:
        return f"interrupted before anything was heard{'; nothing is written' if part else ''}"
    ends = [f"{source.name} was heard until {clock(transcript.seconds)}" for source, transcript in heard]
    if whole := results.lines - len(heard):
        ends.insert(0, "the first file is done" if whole == 1 else f"the first {whole:,} files are done")
    if part is None:
        return f"interrupted; {', '.join(ends)}"
    results.keep_whole(part)
    return f"interrupted; {part} has what was heard, and {output} is as it was; {', '.join(ends)}"
