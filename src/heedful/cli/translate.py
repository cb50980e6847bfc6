"""`heedful translate` and `heedful write`: translate, summarise or reply with an encoder-decoder, line by line."""

import json
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.inputs import input_file, input_lines, is_typed, progress_of, texts_or_stdin, warning_if_unknown
from heedful.cli.options import (
    STDIN,
    STDOUT,
    Beam,
    Device,
    Force,
    InputForm,
    MaxExtra,
    NBest,
    Precision,
    SourceField,
    mirrored,
)
from heedful.cli.output import check_output
from heedful.cli.tables import (
    check_columns,
    check_json_output,
    given_texts,
    one_line,
    wanted_texts,
    whole_lines,
    writing_answers,
)
from heedful.config.keys import KEYS
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.checkpoint.load import LoadedModel
    from heedful.config.schema import Recipe
    from heedful.predictors.literal_translator import LiteralTranslator
    from heedful.predictors.translator import Alternative, Translation, Translator
    from heedful.text.tokenizer import Tokenizer

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
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences to translate.", show_default=STDIN, callback=texts_or_stdin),
    ] = None,
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
    input_form: InputForm = None,
    source_field: SourceField = None,
    output: Annotated[
        Path | None, typer.Option(help="File to write; for a folder, the folder of the results.", show_default=STDOUT)
    ] = None,
    beam: Beam = None,
    penalty: Annotated[str | None, mirrored(KEYS.decode.penalty)] = None,
    alpha: Annotated[float | None, mirrored(KEYS.decode.alpha)] = None,
    n_best: NBest = None,
    patience: Annotated[float | None, mirrored(KEYS.decode.patience)] = None,
    max_extra: MaxExtra = None,
    batch_tokens: Annotated[int | None, mirrored(KEYS.decode.batch_tokens)] = None,
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
    device: Device = "auto",
    _force: Force = False,
    precision: Precision = "float32",
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

    if n_best and n_best > 1 and not as_json:
        raise InputError(f"--n-best {n_best}: plain output is one translation a line; add --json")
    changes = {
        "beam": beam,
        "penalty": penalty,
        "alpha": alpha,
        "n_best": n_best,
        "patience": patience,
        "max_extra": max_extra,
        "batch_tokens": batch_tokens,
    }
    chosen = {key: value for key, value in changes.items() if value is not None}
    if shard_lines or ray or (source and source.is_dir()):
        from heedful.cli.translate_folder import FolderTranslation, check_options, translate_folder
        from heedful.jobs import SHARD_LINES

        folders = check_options(text, source, output)
        check_columns(None, "--input FILE for a folder, whose files are lines", source_field, input_form)
        lines = shard_lines or SHARD_LINES
        translate_folder(FolderTranslation(*folders, model, device, precision, chosen, as_json, lines, literals), ray)
        return
    check_output(output, source)
    check_json_output(output, as_json=as_json)
    source = input_file(text, source, input_form)
    check_columns(source, "--input", source_field)
    lines = whole_lines(input_lines(text, source))
    translator = prepare(model, device, precision, chosen)
    given = given_texts(lines, source, wanted_texts(translator.recipe, source_field))
    rows, read = tee(warning_if_unknown(given.rows, translator.tokenizers.source, lambda row: row.texts[0]))
    window = 1 if is_typed(text, source) else WINDOW
    truncated, said = [], Said()
    column = "answer" if translator.recipe and translator.recipe.task != "translation" else "translation"
    with (
        progress_of("translating", text, source, output, f"{given.unit}s", count=given.count) as progress,
        writing_answers(output, source, given, () if as_json else (column,)) as results,
    ):
        lines_of = line_translator(translator, literals and not as_json)
        found = lines_of.translate_lines((row.texts[0] for row in read), window, progress.advance)
        for row, translation in zip(rows, found, strict=True):
            line = json_line(translation, translator.tokenizers.target) if as_json else one_line(translation.text)
            results.write(row, line, {column: translation.text})
            said.count(translation)
            if translation.truncated:
                truncated.append(row.line)
    if truncated:
        others = f" and {len(truncated) - 1} more" if truncated[1:] else ""
        typer.echo(
            f"heedful: line {truncated[0]}{others}: only {translator.longest_source - 1} tokens of a line are "
            "translated; split long lines into sentences",
            err=True,
        )
    said.tell(model, translator)


write = typer.Typer(add_completion=False)  # the same command under another name, with its own help
write.command("write", help=WRITE)(translate)


@dataclass
class Said:
    """Counts of a model's translations of lines that are not blank, of the empty ones, and of those that were cut."""

    translations: int = 0
    empty: int = 0
    cut: int = 0

    def count(self, translation: "Translation") -> None:
        """Count a translation, and whether it is empty or cut; the translation of a blank line is not counted."""
        if translation.alternatives:
            self.translations += 1
            self.empty += not translation.text
            self.cut += not translation.complete

    def tell(self, model: str, translator: "Translator", option: str = "--max-extra") -> None:
        """Warn of translations by a model that were cut at the length limit, or are empty, if there are any."""
        from heedful.predictors.outputs import CutOutputs

        positions = translator.model.max_target_positions()
        if line := CutOutputs(self.translations, self.cut).line(translator.config, positions, option):
            typer.echo(f"heedful: {line}", err=True)
        if self.empty:
            typer.echo(
                f"heedful: {self.empty:,} of {counted(self.translations, 'translations')} by {model} are empty; a "
                "model that was trained for too short a time says nothing",
                err=True,
            )


def prepare(model: str, device: str, precision: str, changes: dict[str, Any]) -> "Translator":
    """Load a translator, and override settings of its beam search.

    Raises:
        InputError: there is no such model, device or precision, the model does not translate, or a setting is wrong.
    """
    from heedful.predictors.translator import Translator

    loaded = load(model, device, precision)
    translator = loaded.use_as(Translator)
    translator.config = changed(loaded, "decode", changes).decode
    return translator


def line_translator(translator: "Translator", literals: bool) -> "Translator | LiteralTranslator":
    """Return the translator of lines: one that leaves literals as they are, if asked for, and if it translates."""
    from heedful.predictors.literal_translator import LiteralTranslator

    translates = translator.recipe is not None and translator.recipe.task == "translation"
    return LiteralTranslator(translator) if literals and translates else translator


def load(model: str, device: str, precision: str) -> "LoadedModel":
    """Load a model on a device, in float32 or int8 precision."""
    from heedful.checkpoint.load import load_model
    from heedful.machine import prepare_process

    prepare_process()
    return load_model(model, device, precision)


def changed(loaded: "LoadedModel", table: str, changes: dict[str, Any]) -> "Recipe":
    """Return the recipe of a loaded model with some keys of one table changed, such as those of [decode]."""
    from heedful.config.load import recipe_from_dict, recipe_to_dict

    values = recipe_to_dict(loaded.recipe)
    return recipe_from_dict(values | {table: values[table] | changes}, f"{loaded.path}, with these options")


def json_line(translation: "Translation", tokenizer: "Tokenizer") -> str:
    """Format a translation as a line of JSON: the alternatives, best first, and whether the source was truncated."""
    found = [alternative_fields(alternative, tokenizer) for alternative in translation.alternatives]
    return json.dumps({"translations": found, "truncated": translation.truncated}, ensure_ascii=False)


def alternative_fields(alternative: "Alternative", tokenizer: "Tokenizer") -> dict[str, Any]:
    """Return the JSON fields of an alternative translation; `pieces` names each token with a score, <eos> included."""
    from heedful.text.tokenizer import EOS

    found = alternative.hypothesis
    return {
        "text": alternative.text,
        "score": found.score,
        "pieces": tokenizer.pieces([*found.tokens, EOS] if found.complete else found.tokens),
        "token_scores": found.token_scores,
        "complete": found.complete,
    }
