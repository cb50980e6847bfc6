"""`heedful translate` and `write`: translate, summarise or reply with an encoder-decoder, lines or whole folders."""

import hashlib
import json
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.answering import (
    AnswerForm,
    TextCommand,
    changed,
    check_n_best,
    load,
    settings,
    warn_of_cut_outputs,
)
from heedful.cli.inputs import check_columns, texts_argument, wanted_texts, warning_if_unknown
from heedful.cli.output import one_line
from heedful.config.keys import KEYS
from heedful.data.readers.files import read_lines
from heedful.data.readers.labelled import WholeRow, is_table
from heedful.errors import InputError, Interrupted, Terminated
from heedful.progress import show_progress
from heedful.storage.manifest import MANIFEST
from heedful.text.tokenizer import EOS
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.jobs import FolderJob
    from heedful.predictors.literal_translator import LiteralTranslator
    from heedful.predictors.translator import Alternative, Translation, Translator
    from heedful.progress import ProgressReporter
    from heedful.text.tokenizer import Tokenizer

LOOKED_AT = 1000  # lines of the first file that tell whether the vocabulary knows the language

WRITE = """Write a summary, a reply or an answer for each text; one line in, one line out.

This is `heedful translate` under a name for models of tasks other than
translation. The turns of a dialogue are on one line, with tabs between them.

In a table, the texts are read from the column that the model's recipe names
or, if the table does not have it, that `heedful init` would take for the text;
--column names another. An output file whose name ends in .csv, .tsv or .jsonl
is a table: the columns of the input, and "answer". On a line of other output,
a line feed inside an answer is written as \\n, a carriage return as \\r, and a
backslash before n, r or a backslash as \\\\.
"""


def translate(
    text: Annotated[list[str] | None, texts_argument("Sentences to translate.")] = None,
    model: Annotated[
        str, typer.Option(help="Folder of a model or of a run, or the name of a built-in model.")
    ] = "en-de",
    source: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="File to translate, one sentence a line, or a table: .tsv, .csv or .jsonl; or a folder of files of "
            "lines. Each plain, .gz, .bz2 or .xz. - is standard input.",
        ),
    ] = None,
    input_form: options.InputForm = None,
    source_field: options.SourceField = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; for a folder, the folder of the results.", show_default=options.STDOUT),
    ] = None,
    beam: options.Beam = None,
    penalty: Annotated[str | None, options.mirrored(KEYS.decode.penalty)] = None,
    alpha: Annotated[float | None, options.mirrored(KEYS.decode.alpha)] = None,
    n_best: options.NBest = None,
    patience: Annotated[float | None, options.mirrored(KEYS.decode.patience)] = None,
    max_extra: options.MaxExtra = None,
    batch_tokens: Annotated[int | None, options.mirrored(KEYS.decode.batch_tokens)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each sentence, with tokens and scores.")
    ] = False,
    shard_lines: Annotated[
        int | None,
        typer.Option(
            help="Lines of a folder that a process translates at a time, and at most loses when it is killed; a "
            "multiple of 1024. Never changes results.",
            show_default="4096",
        ),
    ] = None,
    ray: Annotated[bool, typer.Option("--ray", help="Translate a folder on the machines of a Ray cluster.")] = False,
    literals: Annotated[
        bool,
        typer.Option(
            help="Leave what is not language as it is (addresses, tags, placeholders, long numbers, bullets, emoji, "
            "blanks at the ends), translate capitals, and write words once that a translation repeats more than three "
            "times in a row. Not with --json, nor for models that do not translate; `evaluate` scores without this."
        ),
    ] = True,
    device: options.Device = "auto",
    _force: options.Force = False,
    precision: options.Precision = "float32",
) -> None:
    r"""Translate sentences, the lines of files, a column of a table, or standard input; one in, one line out.

    With a folder as --input, every file in it is translated to a file of the
    same name in the folder --output. The same command goes on after a stop,
    and shares the work with others that run at the same time, on any machine
    that has both folders.

    In a table, the sentences are read from the column that the model's recipe
    names or, if the table does not have it, from that of the model's source
    language, or that `heedful init` would take for the text. An output file
    whose name ends in .csv, .tsv or .jsonl is a table: the columns of the
    input, and "translation". On a line of other output, a line feed inside a
    translation is written as \n, a carriage return as \r, and a backslash
    before n, r or a backslash as \\.

    A blank line stays blank. With --json a line is
    {"translations": [...], "truncated": false} with the best translation
    first, each {"text", "score", "pieces", "token_scores", "complete"}.
    The score of a token is the natural logarithm of its probability; the
    score of a translation is the sum of its token scores divided by the
    length penalty. "complete" is false if a translation reached the length
    limit, "truncated" is true if only the beginning of a source line that is
    too long was translated.
    """
    from heedful.predictors.translator import WINDOW

    check_n_best(n_best, "translation", as_json=as_json)
    search = settings(
        beam=beam,
        penalty=penalty,
        alpha=alpha,
        n_best=n_best,
        patience=patience,
        max_extra=max_extra,
        batch_tokens=batch_tokens,
    )
    if shard_lines or ray or (source and source.is_dir()):
        from heedful.jobs import SHARD_LINES

        folders = check_options(text, source, output)
        check_columns(None, "--input FILE for a folder, whose files are lines", source_field, input_form)
        lines = shard_lines or SHARD_LINES
        translate_folder(FolderTranslation(*folders, model, device, precision, search, as_json, lines, literals), ray)
        return

    command = TextCommand("translating", text, source, input_form, output, source_field, as_json=as_json)
    texts = command.lines()
    translator = prepare(model, device, precision, search)
    rows = command.rows(texts, wanted_texts(translator.recipe, source_field))
    window = 1 if command.is_typed else WINDOW
    counts, cut_lines = OutputCounts(), []

    def translations(read: "Iterator[WholeRow]", progress: "ProgressReporter") -> "Iterator[Translation]":
        texts = warning_if_unknown((row.texts[0] for row in read), translator.tokenizers.source)
        return line_translator(translator, literals and not as_json).translate_lines(texts, window, progress.advance)

    def note(row: "WholeRow", translation: "Translation") -> None:
        counts.add(translation)
        if translation.truncated:
            cut_lines.append(row.line)

    column = "answer" if translator.recipe and translator.recipe.task != "translation" else "translation"
    form = AnswerForm[Any](
        columns=(column,),
        line=lambda translation: one_line(translation.text),
        cells=lambda translation: {column: translation.text},
        json=lambda translation: translation_fields(translation, translator.tokenizers.target),
    )
    command.answer(rows, translations, form, note)
    if cut_lines:
        others = f" and {len(cut_lines) - 1} more" if cut_lines[1:] else ""
        typer.echo(
            f"heedful: line {cut_lines[0]}{others}: only {translator.longest_source - 1} tokens of a line are "
            "translated; split long lines into sentences",
            err=True,
        )
    counts.warn(model, translator)


write = typer.Typer(add_completion=False)  # the same command under another name, with its own help
write.command("write", help=WRITE)(translate)


@dataclass
class OutputCounts:
    """Counts of a model's translations of lines that are not blank, of the empty ones, and of those that were cut."""

    translations: int = 0
    empty: int = 0
    cut: int = 0

    def add(self, translation: "Translation") -> None:
        if translation.alternatives:  # a blank line has none
            self.translations += 1
            self.empty += not translation.text
            self.cut += not translation.complete

    def warn(self, model: str, translator: "Translator") -> None:
        """Warn of translations by a model that were cut at the length limit, or are empty, if there are any."""
        from heedful.predictors.outputs import CutOutputs

        positions = translator.model.max_target_positions()
        warn_of_cut_outputs(CutOutputs(self.translations, self.cut), translator.config, positions)
        if self.empty:
            typer.echo(
                f"heedful: {self.empty:,} of {counted(self.translations, 'translations')} by {model} are empty; a "
                "model that was trained for too short a time says nothing",
                err=True,
            )


def prepare(model: str, device: str, precision: str, search: dict[str, Any]) -> "Translator":
    from heedful.predictors.translator import Translator

    loaded = load(model, device, precision)
    translator = loaded.use_as(Translator)
    translator.config = changed(loaded, "decode", search).decode
    return translator


def line_translator(translator: "Translator", literals: bool) -> "Translator | LiteralTranslator":
    """Return the translator of lines: one that leaves literals as they are, if asked for, and if it translates."""
    from heedful.predictors.literal_translator import LiteralTranslator

    translates = translator.recipe is not None and translator.recipe.task == "translation"
    return LiteralTranslator(translator) if literals and translates else translator


def translation_fields(translation: "Translation", tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the JSON fields of a translation: the alternatives, best first, and whether the source was truncated."""
    alternatives = [alternative_fields(alternative, tokenizer) for alternative in translation.alternatives]
    return {"translations": alternatives, "truncated": translation.truncated}


def alternative_fields(alternative: "Alternative", tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the JSON fields of an alternative translation; `pieces` names each token with a score, <eos> included."""
    hypothesis = alternative.hypothesis
    return {
        "text": alternative.text,
        "score": hypothesis.score,
        "pieces": tokenizer.pieces([*hypothesis.tokens, EOS] if hypothesis.complete else hypothesis.tokens),
        "token_scores": hypothesis.token_scores,
        "complete": hypothesis.complete,
    }


@dataclass(frozen=True)
class FolderTranslation:
    """Task of a process that translates a folder: model, folders and settings of the search."""

    source: Path
    output: Path
    model: str
    device: str
    precision: str
    search: dict[str, Any]  # settings that are not those of the model
    as_json: bool  # results are lines of JSON
    shard_lines: int  # lines that a worker translates at a time
    literals: bool  # leave what is not language as it is, in plain results

    def open(self, done: Callable[[int], object] = lambda _: None) -> tuple["FolderJob", "FolderTranslator"]:
        """Load the model and begin the job, or join it; one that was begun with another model is refused."""
        from heedful.jobs import open_job
        from heedful.predictors.translator import Translator

        loaded = load(self.model, self.device, self.precision)
        translator = loaded.use_as(Translator)
        translator.config = changed(loaded, "decode", self.search).decode
        settings = {
            "model": hashlib.sha256((loaded.path / MANIFEST).read_bytes()).hexdigest(),
            "device": translator.device.type,
            "precision": self.precision,
            "json": self.as_json,
            **asdict(translator.config),
        }
        lines = line_translator(translator, self.literals and not self.as_json)
        if lines is not translator:
            settings["literals"] = True
        job = open_job(self.source, self.output, settings, self.shard_lines, done)
        return job, FolderTranslator(translator, lines, self.as_json)


class FolderTranslator:
    """Translates lines for a job, and counts lines that are too long and translations that are empty."""

    def __init__(self, translator: "Translator", lines: "Translator | LiteralTranslator", as_json: bool) -> None:
        self.translator = translator
        self.lines = lines
        self.counts = OutputCounts()
        self.truncated = 0
        self._as_json = as_json

    def __call__(self, lines: Iterable[str], done: Callable[[int], object]) -> Iterator[str]:

        from heedful.jobs import WINDOW

        for translation in self.lines.translate_lines(lines, WINDOW, done):
            self.counts.add(translation)
            self.truncated += translation.truncated
            if self._as_json:
                fields = translation_fields(translation, self.translator.tokenizers.target)
                yield json.dumps(fields, ensure_ascii=False)
            else:
                yield one_line(translation.text)

    def warn(self, model: str) -> None:
        """Warn of lines that are too long, and of empty translations, among those of this process."""
        if self.truncated:
            typer.echo(
                f"heedful: {counted(self.truncated, 'lines')} were too long: only {self.translator.longest_source - 1} "
                "tokens of a line are translated; split long lines into sentences",
                err=True,
            )
        self.counts.warn(model, self.translator)


def translate_folder(task: FolderTranslation, ray: bool) -> None:
    """Translate the files of a folder until all are done, by this process, others, or the machines of a Ray cluster."""
    with stopping(task.output):
        with show_progress(f"reading {task.source}", "lines") as reading:
            job, translator = task.open(reading.advance)
        # Warns if the vocabulary does not know the beginning of the first file that is not translated yet.
        for file in job.unfinished()[:1]:
            beginning = islice(read_lines(task.source / file), LOOKED_AT)
            for _ in warning_if_unknown(beginning, translator.translator.tokenizers.source):
                pass
        missing = sum(shard.lines for file in job.plan.files for shard in job.missing(file))
        done = job.plan.lines - missing
        with show_progress(f"translating {task.source}", "lines", job.plan.lines, done) as progress:
            if ray:
                from heedful.jobs.on_ray import run_on_ray

                run_on_ray(job, task.open, progress)
            else:
                from heedful.jobs import Worker

                Worker(job, progress).run(translator)
    translator.warn(task.model)
    files = counted(len(job.plan.files), "files")
    typer.echo(f"{files} with {counted(job.plan.lines, 'lines')} are in {task.output}", err=True)


@contextmanager
def stopping(output: Path) -> Iterator[None]:
    """End a block after Ctrl-C or SIGTERM, when claims are given back, with a message on how to go on."""
    terminated = []

    def stop(*_: object) -> None:
        terminated.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt as error:
        message = f"interrupted; what is translated is kept in {output}, and the same command goes on"
        raise (Terminated if terminated else Interrupted)(message) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def check_options(text: list[str] | None, source: Path | None, output: Path | None) -> tuple[Path, Path]:
    """Check that input and output are folders, and return both."""
    if source is None or not source.is_dir():
        raise InputError("--shard-lines and --ray are for folders: give the folder as --input")
    if text:
        raise InputError("there are texts and --input; give one of them")
    if tables := sorted(path.name for path in source.iterdir() if path.is_file() and is_table(path)):
        raise InputError(
            f"--input {source}: {tables[0]} is a table, and of a folder lines are translated; give each table as "
            "--input FILE, and keep files of lines, whose names end otherwise, in the folder"
        )
    if output is None:
        raise InputError(f"--input {source}: is a folder, so --output must name a folder for the results")
    return source, output
