"""`heedful predict`: classify, score or tag texts, answer questions, or classify files, with a trained model."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.decision_options import Threshold, TopK, decide_by
from heedful.cli.evaluate import recipe_of
from heedful.cli.files import Channel, FileOptions, SkipBad, Truncated
from heedful.cli.inputs import input_file, input_lines, place_of, progress_of, texts_or_stdin, warning_if_unknown
from heedful.cli.options import STDIN, Device, Force, InputForm, Model, Output, PairField, SourceField, TextsOrTable
from heedful.cli.output import check_output
from heedful.cli.predict_files import predict_files
from heedful.cli.predict_words import as_pretokenized, word_lists
from heedful.cli.table_output import check_json_output, one_line, writing_answers
from heedful.cli.tables import check_columns, columns_of, given_texts, wanted_texts
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.data.readers.corpus import TableRow
    from heedful.data.readers.whole_rows import WholeRow
    from heedful.predict.text_predictor import TextPredictor


def predict(
    model: Model,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts to classify, score or tag, questions to answer, or files of pictures, sounds or videos.",
            show_default=STDIN,
            callback=texts_or_stdin,
        ),
    ] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    pair_field: PairField = None,
    output: Output = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each text, with probabilities.")
    ] = False,
    threshold: Threshold = None,
    top_k: TopK = None,
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
    r"""Classify texts, pictures, sounds or videos, score or tag texts, or answer questions; one in, one line out.

    The task that the model was trained for decides what the command does. For
    a pair of texts, or a question and the text that holds its answer, put a
    tab between the two on one line. In a table, the command reads the columns
    that the model's recipe names; it ignores other columns, such as labels,
    and does not take the header for a text. Where the recipe names none that
    the table has, it reads the columns that `heedful init` would take for
    text, and says so. A tagger cuts a text into words like those of its
    training data; with --pretokenized, and in a .jsonl file whose lines are or
    hold arrays of words, the words are given.

    An output file whose name ends in .csv, .tsv or .jsonl is a table: the
    columns of the input, and those of the answer; of a classifier the label
    and a probability for each class, or the --top-k best of both. On a line of other output, a
    line feed inside an answer is written as \n, a carriage return as \r, and
    a backslash before n, r or a backslash as \\.

    A model of pictures, of sounds or of videos takes files, folders of them,
    and tables that name a file in each row: each line is a file, a tab and its
    class. Files that cannot be read are named at the end.
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
        source = input_file(text, source, input_form)
        check_columns(source, "--input", source_field)
        decision = (threshold, top_k)
        predict_files(model, text or [], source, source_field, output, device, reading, decision, as_json=as_json)
        return
    check_json_output(output, as_json=as_json)
    source = input_file(text, source, input_form)
    check_columns(source, "--input", source_field, pair_field)
    lines = input_lines(text, source)
    prepare_process()
    loaded = load_model(model, device)
    predictor = loaded.use_as(TextPredictor)
    decide_by(predictor, model, threshold, top_k)
    fields = fields_of(loaded.recipe, pair_field)
    names = (source_field, pair_field)[: len(fields)]
    given = word_lists(predictor, source, source_field) or given_texts(
        pairs_in(lines, source), source, wanted_texts(loaded.recipe, *names, fields=fields)
    )
    if pretokenized:
        given = as_pretokenized(given, predictor, source)
    rows, read = tee(warning_if_unknown(given.rows, loaded.tokenizers.source, lambda row: "\t".join(row.texts)))
    odd = OddTexts(len(fields) if loaded.recipe.data.train else 2)
    columns = () if as_json else predictor.columns
    with (
        progress_of("predicting", text, source, output, f"{given.unit}s", count=given.count) as progress,
        writing_answers(output, source, given, columns) as results,
    ):
        answers = predictor.predict_lines(Text(*row.texts) for row in checked(read, predictor, source))
        for row, answer in zip(rows, answers, strict=True):
            line = json.dumps(asdict(answer), ensure_ascii=False) if as_json else one_line(predictor.line(answer))
            results.write(row, line, predictor.cells(answer))
            progress.advance()
            odd.add(row, answer)
    odd.tell(loaded.recipe.data.max_length, results.lines)


@dataclass
class OddTexts:
    """Lines of input texts of which the answers mean less than those of others.

    Attributes:
        trained_on: The number of texts that the model has learned to read together: 1, or 2 for pairs, and for models
            that were trained elsewhere.
    """

    trained_on: int
    cut: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    unnamed: list[int] = field(default_factory=list)

    def add(self, row: "WholeRow", answer: object) -> None:
        """Look at the texts of a row, and at the answer to them."""
        if getattr(answer, "truncated", False):
            self.cut.append(row.line)
        if not all(part.strip() for part in row.texts):
            self.empty.append(row.line)
        if len(row.texts) > self.trained_on:
            self.pairs.append(row.line)
        if getattr(answer, "label", None) == "":
            self.unnamed.append(row.line)

    def tell(self, longest: int, count: int) -> None:
        """Warn of the odd texts, if there are any, for a model that reads `longest` tokens, among `count` texts."""
        tell_some(f"texts longer than the {longest:,} tokens that the model reads, and cut to that", self.cut, count)
        single = "pairs, as a tab makes two texts, for a model that was trained on single texts"
        tell_some(single, self.pairs, count)
        tell_some("empty texts, of which the results mean nothing", self.empty, count)
        tell_some("texts without a class, as none reaches its --threshold", self.unnamed, count)


def checked(
    rows: "Iterable[WholeRow]", predictor: "TextPredictor[Any, Any]", source: Path | None
) -> "Iterator[WholeRow]":
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


def fields_of(recipe: "Recipe", pair_field: str | None) -> tuple[str, ...]:
    """Return the names that a recipe has for the table columns of the texts, two if it, or an option, names a pair."""
    from heedful.tasks import find_task

    columns = columns_of(recipe)
    pair = columns.pair_field or find_task(recipe.task).pair_field or pair_field
    return (columns.source_field, *([pair] if pair else []))


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
