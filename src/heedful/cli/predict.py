"""`heedful predict`: classify, score or tag texts, answer questions, or classify files, with a trained model."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.evaluate import recipe_of
from heedful.cli.files import Channel, FileOptions, SkipBad, Truncated
from heedful.cli.inputs import input_lines, place_of, progress_of, warning_if_unknown
from heedful.cli.options import STDIN, Device, Force, Model, Output, PairField, SourceField, TextsOrTable
from heedful.cli.output import check_output, writing_results
from heedful.cli.predict_files import predict_files
from heedful.cli.predict_words import as_pretokenized, word_lists
from heedful.cli.tables import asked_of, check_columns, columns_of
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.data.readers.corpus import TableRow
    from heedful.predict.text_predictor import TextPredictor


def predict(
    model: Model,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts to classify, score or tag, questions to answer, or files of pictures, sounds or videos.",
            show_default=STDIN,
        ),
    ] = None,
    source: TextsOrTable = None,
    source_field: SourceField = None,
    pair_field: PairField = None,
    output: Output = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each text, with probabilities.")
    ] = False,
    pretokenized: Annotated[
        bool,
        typer.Option(
            "--pretokenized",
            help="For a tagger: take words as they are, between spaces or in a JSON array of words on each line.",
        ),
    ] = False,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    channel: Channel = None,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    """Classify texts, pictures, sounds or videos, score or tag texts, or answer questions; one in, one line out.

    The task that the model was trained for decides what the command does. For
    a pair of texts, or a question and the text that holds its answer, put a
    tab between the two on one line. In a table, the command reads the columns
    that the model's recipe names; it ignores other columns, such as labels,
    and does not take the header for a text. A model of pictures, of sounds or
    of videos takes files, folders of them, and tables that name a file in
    each row: each line is a file, a tab and its class. Files that cannot be
    read are named at the end. A tagger cuts a text into words like those of its
    training data; with --pretokenized, and in a .jsonl file whose lines are or
    hold arrays of words, the words are given.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predict import Text
    from heedful.predict.text_predictor import TextPredictor

    check_output(output, source)
    reading = FileOptions(skip_bad, truncated, channel)
    reading.check(model, recipe := recipe_of(model))
    if recipe.data.modality != "text":
        if pair_field:
            raise InputError(f"{model} reads one file at a time; leave --pair-field out")
        if pretokenized:
            raise InputError(f"{model} reads files, not words; leave --pretokenized out")
        check_columns(source, "--input", source_field)
        predict_files(model, text or [], source, source_field, output, device, reading, as_json=as_json)
        return
    check_columns(source, "--input", source_field, pair_field)
    given = input_lines(text, source)
    prepare_process()
    loaded = load_model(model, device)
    predictor = loaded.use_as(TextPredictor)
    asked = word_lists(predictor, source, source_field) or asked_of(
        pairs_in(given, source), source, fields_of(loaded.recipe, source_field, pair_field)
    )
    if pretokenized:
        asked = as_pretokenized(asked, predictor, source)
    rows, read = tee(warning_if_unknown(asked.rows, loaded.tokenizers.source, lambda row: "\t".join(row.texts)))
    cut, empty, unknown = [], [], []
    trained_on = texts_of(loaded.recipe)
    with (
        progress_of("predicting", text, source, output, f"{asked.unit}s", count=asked.count) as progress,
        writing_results(output, source, unit=asked.unit) as results,
    ):
        answers = predictor.predict_lines(Text(*row.texts) for row in checked(read, predictor, source))
        for row, answer in zip(rows, answers, strict=True):
            results.write(json.dumps(asdict(answer), ensure_ascii=False) if as_json else str(answer))
            progress.advance()
            if getattr(answer, "truncated", False):
                cut.append(row.line)
            if not all(part.strip() for part in row.texts):
                empty.append(row.line)
            if len(row.texts) > trained_on:
                unknown.append(row.line)
    longest = f"the {loaded.recipe.data.max_length:,} tokens that the model reads"
    tell_some(f"texts longer than {longest}, and cut to that", cut, results.lines)
    tell_some("pairs, as a tab makes two texts, for a model that was trained on single texts", unknown, results.lines)
    tell_some("empty texts, of which the results mean nothing", empty, results.lines)


def checked(
    rows: "Iterable[TableRow]", predictor: "TextPredictor[Any, Any]", source: Path | None
) -> "Iterator[TableRow]":
    """Yield rows of input, of which the predictor can read each.

    Raises:
        InputError: it cannot read one; the message names its file and line.
    """
    from heedful.predict import Text

    for row in rows:
        try:
            predictor.check(Text(*row.texts))
        except InputError as error:
            raise InputError(f"{place_of(source, row.line)}: {error}") from error
        yield row


def tell_some(what: str, places: list[int], count: int) -> None:
    """Warn of odd input texts, if there are any: how many of how many, and the line of the first."""
    if places:
        typer.echo(f"heedful: {what}: {len(places):,} of {count:,} (first: line {places[0]:,})", err=True)


def fields_of(recipe: "Recipe", source_field: str | None, pair_field: str | None) -> tuple[str, ...]:
    """Return the names of the table columns to read texts from: as given, or else as the recipe names them."""
    from heedful.tasks import find_task

    columns = columns_of(recipe)
    pair = pair_field or columns.pair_field or find_task(recipe.task).pair_field
    return (source_field or columns.source_field, *([pair] if pair else []))


def texts_of(recipe: "Recipe") -> int:
    """Number of texts that a model was trained to read together: 1, or 2 for pairs and for models trained elsewhere."""
    return len(fields_of(recipe, None, None)) if recipe.data.train else 2


def pairs_in(lines: Iterable[str], source: Path | None) -> Iterator["TableRow"]:
    """Split each input line at a tab into a pair of texts; a line without a tab is a single text.

    Raises:
        InputError: a line has more than one tab.
    """
    from heedful.data.readers.corpus import TableRow

    for number, line in enumerate(lines, start=1):
        parts = line.split("\t")
        if len(parts) > 2:
            raise InputError(
                f"{place_of(source, number)}: {len(parts)} texts with tabs between them; give one, or a pair"
            )
        yield TableRow(number, tuple(parts))
