"""`heedful translate` and `heedful write`: translate, summarise or reply with an encoder-decoder, line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from heedful.data.readers.labelled import WholeRow
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.literal_translator import LiteralTranslator
    from heedful.predictors.translator import Alternative, Translation, Translator
    from heedful.progress import ProgressReporter

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
        from heedful.cli.translate_folder import FolderTranslation, check_options, translate_folder
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
        known = warning_if_unknown((row.texts[0] for row in read), translator.tokenizers.source)
        return line_translator(translator, literals and not as_json).translate_lines(known, window, progress.advance)

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
