"""`heedful transcribe`: write down the speech in files of sound, as text or as subtitles."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.inputs import shows_bar
from heedful.cli.options import MODELS, Device, Force, MaxExtra, Model, Output, Precision
from heedful.cli.output import Results, check_output, free_name, json_of_files, writing_results
from heedful.cli.translate import load
from heedful.errors import InputError, Interrupted
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.data.media.recordings import Recording
    from heedful.decode.transcriber import Transcriber
    from heedful.decode.transcript import Segment, Transcript


class Form(StrEnum):
    """Forms in which `heedful transcribe` writes a transcript."""

    TEXT = "text"
    JSON = "json"
    SRT = "srt"
    VTT = "vtt"


def transcribe(
    file: Annotated[
        list[Path],
        typer.Argument(help="Files of sound: WAV, FLAC, Ogg, MP3, AIFF or AU, of any length.", show_default=False),
    ],
    model: Model,
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="Format to write: a line of text or of JSON for each file, or the subtitles of one file."
        ),
    ] = Form.TEXT,
    language: Annotated[
        str | None,
        typer.Option(help="Language of the speech, such as de, for a model of several.", show_default="as it sounds"),
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(help="Beam size: hypotheses kept at each step; 1 is greedy search.", show_default=MODELS),
    ] = None,
    max_extra: MaxExtra = None,
    output: Output = None,
    device: Device = "auto",
    _force: Force = False,
    precision: Precision = "float32",
) -> None:
    """Write down the speech in files of sound; one file in, one line out.

    Subtitles and JSON tell when each segment was said, if the model writes
    time stamps; else a segment is a part of the recording as long as the model
    reads at once. With --format json a line is {"file", "language", "seconds",
    "text", "complete", "segments": [{"start", "end", "text", "pieces", "token_scores"}]}.
    The score of a token is the natural logarithm of its probability.

    After Ctrl-C, what was heard so far is written; with --output, into a file
    that ends in .part.
    """
    from heedful.decode.cut_outputs import CutOutputs
    from heedful.decode.transcriber import Transcriber

    if form in SUBTITLES and len(file) > 1:
        raise InputError(f"--format {form}: subtitles are of one file, and there are {len(file)}; give one at a time")
    check_output(output, *file)
    seconds = sum(recording.seconds for recording in checked_files(file))
    transcriber = load(model, device, precision).use_as(Transcriber)
    options: dict[str, Any] = {}
    if transcriber.settings.transcribe.timestamps != "never":  # as of a model that has learned none
        options["timestamps"] = "long" if form is Form.TEXT else "always"
    options |= {
        key: value
        for key, value in (("beam", beam), ("language", language), ("max_extra", max_extra))
        if value is not None
    }
    transcriber = transcriber.with_options(**options)
    cut = CutOutputs()
    with (
        show_progress("transcribing", "seconds of sound", int(seconds), bar=shows_bar(output)) as progress,
        writing_results(output, None, unit="file") as results,
    ):
        found = transcriber.transcribe_each(file, done=progress.advance)
        rest = iter(file)
        try:
            for transcript in found:
                cut.count(transcript.complete)
                results.write(written(next(rest), transcript, form, transcriber))
        except KeyboardInterrupt as error:
            waiting = found.heard()
            last = max((place for place, transcript in enumerate(waiting, start=1) if transcript.seconds), default=0)
            heard = list(zip(rest, waiting[:last], strict=False))
            for path, transcript in heard:
                results.write(written(path, transcript, form, transcriber))
            raise Interrupted(kept(results, output, heard)) from error
    if line := cut.line(transcriber.settings.decode, transcriber.model.max_target_positions(), "--max-extra"):
        typer.echo(f"heedful: {line}", err=True)


def checked_files(files: list[Path]) -> list["Recording"]:
    """Read all files, to find those that are no sound, or are cut off, before the work begins.

    Raises:
        InputError: Some cannot be read; the message has a line for each of them.
    """
    from heedful.config.modalities import AudioConfig
    from heedful.data.media.recordings import file_recording

    recordings, problems = [], []
    for path in files:
        try:
            recording = file_recording(path, AudioConfig())
            recording.check()
            recordings.append(recording)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n  ".join(problems))
    return recordings


def kept(results: Results, output: Path | None, heard: "Sequence[tuple[Path, Transcript]]") -> str:
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


def written(path: Path, transcript: "Transcript", form: Form, transcriber: "Transcriber") -> str:
    """Format a transcript, without the line feed at its end."""
    from heedful.decode.transcript import srt, vtt

    subtitles: dict[Form, Callable[[list[Segment]], str]] = {Form.SRT: srt, Form.VTT: vtt}
    if form in subtitles:
        return subtitles[form](transcript.segments).removesuffix("\n")
    return json_line(path, transcript, transcriber) if form is Form.JSON else transcript.text


def json_line(path: Path, transcript: "Transcript", transcriber: "Transcriber") -> str:
    """Format a transcript as a line of JSON: the file, its language and length, and the segments with their times."""
    segments = [
        {
            "start": round(segment.start, 3),
            "end": round(segment.end, 3),
            "text": segment.text,
            "pieces": transcriber.tokenizer.pieces(segment.tokens),
            "token_scores": segment.token_scores,
        }
        for segment in transcript.segments
    ]
    facts = {"file": str(path), "language": transcript.language, "seconds": round(transcript.seconds, 3)}
    return json_of_files({**facts, "text": transcript.text, "complete": transcript.complete, "segments": segments})


SUBTITLES = (Form.SRT, Form.VTT)
