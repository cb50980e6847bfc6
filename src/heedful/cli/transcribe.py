"""`heedful transcribe`: speech to text, plain or as subtitles."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.answering import Notes, load, settings, warn_of_cut_outputs
from heedful.cli.files import Channel, FileOptions, ReadFiles, SkipBad, Truncated, named_files
from heedful.cli.inputs import TextRows, shows_bar
from heedful.cli.options import (
    Beam,
    Device,
    Engine,
    Force,
    MaxExtra,
    Model,
    Output,
    Precision,
    folder_to_write,
    mirrored,
)
from heedful.cli.output import Results, check_output, one_cell, one_line, to_json, writing, writing_results
from heedful.config.keys import KEYS
from heedful.config.schema import DecodeConfig, Recipe, TranscribeConfig
from heedful.errors import InputError, Interrupted
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.media.audio_reader import AudioReader
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.transcript import Segment, Transcript


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    SRT = "srt"
    VTT = "vtt"
    TSV = "tsv"


SINGLE = (Form.SRT, Form.VTT, Form.TSV)  # formats with one transcript per file
FORM_OF_ENDING = {f".{form}": form for form in (Form.JSON, Form.SRT, Form.VTT)}  # not .tsv: it is a table of all files


class SpeechTask(StrEnum):
    """Task of a Whisper model: transcription in the spoken language, or translation into English."""

    TRANSCRIBE = "transcribe"
    TRANSLATE = "translate"


def transcribe(
    file: Annotated[
        list[str],
        typer.Argument(
            help="Audio or video files of any length, folders or tables of them, or - for standard input: an audio "
            "file, or file names, one per line.",
            show_default=False,
        ),
    ],
    model: Model,
    form: Annotated[
        Form | None,
        typer.Option(
            "--format",
            help="Output format: one line of text or JSON per file; or subtitles or a table, for one file or, with "
            "--out, for several.",
            show_default="from the extension of --output, otherwise text",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for transcripts, one file per audio file.", callback=folder_to_write, show_default=False
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
    engine: Engine = "auto",
) -> None:
    r"""Transcribe the speech in audio files; one output line per file: the file, a tab, and the text.

    An output file whose name ends in .csv, .tsv or .jsonl is a table with the
    columns "file" and "text". In plain-text output, a tab or line break in a
    name or a text is written as \t, \n or \r.

    Subtitles and JSON contain the times of each segment, if the model generates
    timestamps; otherwise a segment is as long as the model's input window. With
    --format json, each line is {"file", "language", "seconds", "text",
    "complete", "segments": [{"start", "end", "text", "pieces",
    "token_scores"}]}. The score of a token is the natural logarithm of its
    probability. --format tsv has the start and end of each segment in
    milliseconds, and its text. With --word-timestamps, segments have "words":
    [{"start", "end", "word", "score"}]. Files that cannot be read are listed at
    the end.

    After Ctrl-C, the transcripts so far are written: with --output, to a file
    that ends in .part; with --out, only the complete ones.
    """
    from heedful.predictors.outputs import CutOutputs

    form = form or FORM_OF_ENDING.get(output.suffix.lower() if output else "", Form.TEXT)
    check_output(output, *map(Path, file), as_json=form is Form.JSON)
    if out and output:
        raise InputError("--output is one file for all transcripts, --out a folder with one file each; give only one")
    options = settings(locals() | {"word_timestamps": word_timestamps or None}, DecodeConfig, TranscribeConfig)
    # JSON has a score for each token, which torch computes in float32; so with "auto" torch also does the search,
    # unless the precision is int8.
    needs_torch = (engine, precision, form) == ("auto", "float32", Form.JSON)
    transcriber = load_transcriber(model, device, precision, "torch" if needs_torch else engine, options)
    transcriber.settings = recipe = FileOptions(skip_bad, truncated, channel).recipe(model, transcriber.settings)
    sources = sources_of(file, recipe)
    if word_timestamps and form is not Form.JSON:
        raise InputError("--word-timestamps are written only in JSON; add --format json")
    if form in SINGLE and len(sources) > 1 and out is None:
        raise InputError(
            f"--format {form}: is for one audio file, but there are {len(sources)}; give --out FOLDER, "
            "so that each has a separate file"
        )
    check_output(output, *(source.content for source in sources if isinstance(source.content, Path)))
    paths = transcript_paths(out, sources, form) if out else {}

    # All files are read once before the work begins, so that bad ones are left out and the total duration is known.
    files = ReadFiles(sources, lambda source: source.opened(recipe))
    seconds = sum(audio.seconds for audio in files)
    if transcriber.settings.transcribe.timestamps != "never":  # never: the model was trained without timestamps
        options["timestamps"] = "long" if form is Form.TEXT else "always"
    transcriber = transcriber.with_options(**options)

    cut, notes = CutOutputs(), Notes()
    remedy = "; --no-vad transcribes them anyway" if transcriber.settings.transcribe.vad else ""
    rows = TextRows(iter(()), None, "file", ("file",))
    columns = ("text",) if form is Form.TEXT else ()
    with (
        show_progress("transcribing", "seconds of audio", ceil(seconds), bar=shows_bar(output)) as progress,
        nullcontext() if out else writing_results(output, None, rows=rows, columns=columns) as results,
    ):
        writer = TranscriptWriter(transcriber, form, results, paths)
        for source, transcript in writer.transcripts(files.read, output, progress.advance):
            writer.write(source, transcript)
            cut.count(transcript.complete)
            notes.add(f"files in which no speech was detected{remedy}", source.name, not transcript.segments)
    warn_of_cut_outputs(cut, transcriber)
    notes.warn(len(files.read))
    files.check(skip_bad=skip_bad)


def load_transcriber(model: str, device: str, precision: str, engine: str, options: dict[str, Any]) -> "Transcriber":
    from heedful.convert.engine import open_predictor
    from heedful.machine import prepare_process
    from heedful.predictors.ctranslate2_transcriber import CTranslate2Transcriber
    from heedful.predictors.transcriber import Transcriber

    prepare_process()
    transcriber = open_predictor(CTranslate2Transcriber, model, engine, device, precision, options)
    return transcriber or load(model, device).use_as(Transcriber)


@dataclass(frozen=True)
class Source:
    """Audio to transcribe: a file given on the command line, or the content of standard input."""

    name: str
    content: Path | bytes

    def opened(self, recipe: "Recipe") -> "AudioReader":
        """Open the audio; check that a file can be read to its end."""
        from heedful.media.audio_reader import FileAudioReader, audio_reader

        truncated = recipe.data.truncated_files == "read"
        audio = audio_reader(self.content, recipe.audio, truncated=truncated)
        if isinstance(audio, FileAudioReader):
            audio.check()
        return audio


def sources_of(names: Sequence[str], recipe: "Recipe") -> list[Source]:
    """List the given audio: files, those in folders and tables, and the content of standard input."""
    sources: list[Source] = []
    problems = []
    for name in names:
        try:
            if name == "-":
                sources += sources_on_stdin()
            else:
                paths = named_files([name], recipe)
                sources += (Source(name if path == Path(name) else str(path), path) for path in paths)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n  ".join(problems))
    return sources


def sources_on_stdin() -> list[Source]:
    """Read standard input: an audio file, or a list of file names, one per line."""
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    if not content.strip():
        raise InputError("-: standard input is empty; pipe in an audio file, or file names, one per line")
    try:
        lines = [] if b"\0" in content else content.decode().splitlines()
    except UnicodeDecodeError:
        lines = []
    return [Source(line, Path(line)) for line in lines if line.strip()] or [Source("standard input", content)]


def transcript_paths(folder: Path, sources: Sequence[Source], form: Form) -> dict[Source, Path]:
    """Create the folder for the transcripts, and choose a file in it for each source.

    The file is named after the stem of the source or, if several sources share the stem, after the full name.
    """
    stems = {source: Path(source.name).stem if isinstance(source.content, Path) else "stdin" for source in sources}
    times = Counter(stems.values())
    ending = ".txt" if form is Form.TEXT else f".{form}"
    paths = {
        source: folder / f"{stem if times[stem] == 1 else Path(source.name).name}{ending}"
        for source, stem in stems.items()
    }
    if twice := [path for path, count in Counter(paths.values()).items() if count > 1]:
        raise InputError(f"--out {folder}: two transcripts would be named {twice[0].name}; rename a source file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be created ({error.strerror or error})") from error
    for path in paths.values():
        check_output(path, *(each.content for each in sources if isinstance(each.content, Path)), option="--out")
    return paths


@dataclass
class TranscriptWriter:
    """Writer of transcripts in one format: to the command's results, or each to its own file."""

    transcriber: "Transcriber"
    form: Form
    results: Results | None
    paths: dict[Source, Path]  # of the transcripts, if there are no results

    def transcripts(
        self, sources: Sequence[Source], output: Path | None, advance: Callable[[int], object]
    ) -> "Iterator[tuple[Source, Transcript]]":
        """Yield each source with its transcript, which the caller writes.

        After Ctrl-C, write the unfinished transcripts, unless each has its own file, and raise `Interrupted`.
        """
        transcripts = self.transcriber.transcribe_each([source.content for source in sources], done=advance)
        done = 0
        try:
            for transcript in transcripts:
                yield sources[done], transcript
                done += 1
        except KeyboardInterrupt as error:
            if self.results is None:
                verb = "is" if done == 1 else "are"
                count = counted(len(sources), "files")
                raise Interrupted(f"interrupted; {done:,} of {count} {verb} done") from error
            # A later file may have been read before an earlier one, whose transcript is then empty.
            partial = list(zip(sources[done:], transcripts.so_far(), strict=False))
            while partial and not partial[-1][1].seconds:
                partial.pop()
            for source, transcript in partial:
                self.write(source, transcript)
            raise Interrupted(interrupted(self.results, output, partial)) from error

    def write(self, source: Source, transcript: "Transcript") -> None:
        content = self.formatted(source.name, transcript)
        if self.results is None:
            with writing(self.paths[source]) as stream:
                stream.write(f"{content}\n".encode(errors="surrogateescape"))
        elif self.form is Form.TEXT:
            line = f"{one_cell(source.name)}\t{one_line(content)}"
            self.results.write_answer([source.name], line, {"text": content})
        else:
            self.results.write(content)

    def formatted(self, name: str, transcript: "Transcript") -> str:
        from heedful.predictors.transcript import srt, tsv, vtt

        formats: dict[Form, Callable[[list[Segment]], str]] = {Form.SRT: srt, Form.VTT: vtt, Form.TSV: tsv}
        if self.form in formats:
            return formats[self.form](transcript.segments).removesuffix("\n")
        if self.form is Form.TEXT:
            return transcript.text
        facts = {"file": name, "language": transcript.language, "seconds": round(transcript.seconds, 3)}
        segments = [self.segment_fields(segment) for segment in transcript.segments]
        return to_json({**facts, "text": transcript.text, "complete": transcript.complete, "segments": segments})

    def segment_fields(self, segment: "Segment") -> dict[str, Any]:
        fields: dict[str, Any] = {
            "start": round(segment.start, 3),
            "end": round(segment.end, 3),
            "text": segment.text,
            "pieces": self.transcriber.tokenizer.pieces(segment.tokens),
            "token_scores": list(segment.token_scores),
        }
        if segment.words:
            fields["words"] = [
                {"start": round(word.start, 3), "end": round(word.end, 3), "word": word.text, "score": word.score}
                for word in segment.words
            ]
        return fields


def interrupted(results: Results, output: Path | None, partial: "Sequence[tuple[Source, Transcript]]") -> str:
    """Keep the results from before Ctrl-C; return a message about where they are, and where unfinished transcripts end.

    `partial` are the files that were not read to the end, with their transcripts so far; the results include them.
    """
    from heedful.predictors.transcript import clock

    part = results.keep_part(output)
    if not results.lines:
        return f"interrupted before anything was transcribed{'; nothing was written' if part else ''}"
    ends = [f"{source.name} was transcribed up to {clock(transcript.seconds)}" for source, transcript in partial]
    if whole := results.lines - len(partial):
        ends.insert(0, "the first file is done" if whole == 1 else f"the first {whole:,} files are done")
    if part is None:
        return f"interrupted; {', '.join(ends)}"
    return f"interrupted; {part} contains the transcripts so far, and {output} is unchanged; {', '.join(ends)}"
