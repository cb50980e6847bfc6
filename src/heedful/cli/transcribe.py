"""`heedful transcribe`: write down the speech in files of sound, as text, as a table or as subtitles."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.files import Channel, FileOptions, SkipBad, Truncated, check_bad_files
from heedful.cli.inputs import shows_bar
from heedful.cli.options import Beam, Device, Force, MaxExtra, Model, Output, Precision, folder_to_write, mirrored
from heedful.cli.output import Results, check_output, free_name
from heedful.cli.table_output import Answers, check_json_output, writing_file_answers
from heedful.cli.transcripts import (
    FORM_OF_ENDING,
    SINGLE,
    Form,
    Source,
    TranscriptFolder,
    readable,
    sources_of,
    written,
)
from heedful.cli.translate import load
from heedful.config.keys import KEYS
from heedful.errors import InputError, Interrupted
from heedful.progress import ProgressReporter, show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.decode.transcriber import Transcriber
    from heedful.decode.transcript import Transcript


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
    from heedful.decode.transcriber import Transcriber

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
        from heedful.decode.cut_outputs import CutOutputs

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
    from heedful.decode.transcript import clock

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
