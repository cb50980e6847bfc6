"""`heedful predict`: classes, numbers, tags or answers for texts, tables, words, and files of images or audio."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.evaluate import recipe_of, refuse
from heedful.cli.files import (
    Channel,
    FileOptions,
    ReadFiles,
    SkipBad,
    Truncated,
    files_in_table,
    named_files,
    rows_of_files,
)
from heedful.cli.inputs import (
    input_file,
    input_lines,
    place_of,
    progress_of,
    shows_bar,
    texts_or_stdin,
    warning_if_unknown,
)
from heedful.cli.options import STDIN, Device, Force, InputForm, Model, Output, PairField, SourceField, TextsOrTable
from heedful.cli.output import check_output, json_of_files
from heedful.cli.tables import (
    GivenTexts,
    check_columns,
    check_json_output,
    columns_of,
    given_texts,
    one_cell,
    one_line,
    separator_of_csv,
    wanted_texts,
    writing_answers,
)
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.data.readers.corpus import TableRow
    from heedful.data.readers.labelled import WholeRow
    from heedful.predictors.media_classifier import ClassifiedMedia
    from heedful.predictors.text_predictor import TextPredictor


Threshold = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[CLASS=]P",
        help="Probability from which a class is named: 0.8 leaves out less probable ones; CLASS=0.3 names one class "
        "from there on, and otherwise the most probable of the others. Can be repeated.",
        show_default="the most probable class",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k", min=1, help="Number of the most probable classes to write.", show_default="all in tables and JSON"
    ),
]


def decide_by(predictor: object, model: str, threshold: list[str] | None, top_k: int | None) -> None:
    """Let a classifier decide as the options say.

    Raises:
        InputError: There are options, and the predictor does not predict classes; or a threshold is not one.
    """
    from heedful.predictors.classifier import Classifier, decision_of
    from heedful.predictors.media_classifier import MediaClassifier

    if not threshold and top_k is None:
        return
    if not isinstance(predictor, Classifier | MediaClassifier):
        option = "--threshold" if threshold else "--top-k"
        raise InputError(f"{option} is for classifiers, and {model} does not predict classes; leave it out")
    predictor.decide_by(decision_of(threshold or (), top_k, predictor.labels))


def predict_files(
    model: str,
    names: list[str],
    source: Path | None,
    field: str | None,
    output: Path | None,
    device: str,
    reading: FileOptions,
    decision: tuple[list[str] | None, int | None],
    *,
    as_json: bool,
) -> None:
    """Write the class of each file, in order; files that cannot be read are named at the end.

    Args:
        model: A model folder or a run.
        names: Files, folders of files, and tables of files.
        source: A further table of files, which `--input` names.
        field: The column of that table that names the files; None: the one of the recipe.
        output: The file to write; None: standard output.
        device: The device to compute on.
        reading: How files are read.
        decision: The thresholds and the number of classes to show, as the options give them.
        as_json: True for a JSON object for each file.

    Raises:
        InputError: No files are named, there are none, some cannot be read, or the output would overwrite one; or
            `source` is no table.
    """
    from heedful.checkpoint import load_model
    from heedful.data.readers.labelled import is_table
    from heedful.machine import prepare_process
    from heedful.predictors.media_classifier import MediaClassifier

    check_json_output(output, as_json=as_json)
    check_output(output, *map(Path, names))
    if source and not is_table(source):
        raise InputError(
            f"--input {source}: {model} reads files, not lines; name them after the options, or in a table whose name "
            "ends in .tsv, .csv or .jsonl"
        )
    prepare_process()
    loaded = reading.applied(model, load_model(model, device))
    predictor = loaded.use_as(MediaClassifier)
    decide_by(predictor, model, *decision)
    named = named_files(names or ["-"], loaded.recipe) if names or not source else []
    tabled = files_in_table(source, loaded.recipe, field) if source else []
    files = ReadFiles([*named, *tabled], predictor.reader.parts)
    check_output(output, *files.files)
    only = (source or Path(names[0])) if len(names) + bool(source) == 1 else None
    given = rows_of_table(only, loaded.recipe, field) if only and is_table(only) else rows_of_names(files.files)
    columns = () if as_json else predictor.decision.columns(predictor.labels)
    odd = OddFiles()
    with (
        show_progress("predicting", "files", len(files.files), bar=shows_bar(output)) as progress,
        writing_answers(output, None, given, columns) as results,
    ):
        rows = list(given.rows)
        for number, answer in enumerate(predictor.answers(files)):
            name = str(files.read[number])
            line = json_of(name, answer) if as_json else f"{one_cell(name)}\t{predictor.decision.line(answer)}"
            results.write(rows[files.places[number]], line, predictor.decision.cells(answer))
            odd.add(name, answer)
            progress.advance()
    odd.tell(loaded.recipe.audio.max_seconds)
    files.check(skip_bad=reading.skip_bad)


def json_of(name: str, answer: "ClassifiedMedia") -> str:
    """Return the answer to a file as a line of JSON."""
    facts = {"file": name, "label": answer.label, "probabilities": answer.probabilities}
    if answer.windows > 1:
        facts["windows"] = answer.windows
    if answer.silent:
        facts["silent"] = True
    return json_of_files(facts)


@dataclass
class OddFiles:
    """Names of files of which the answers mean less than those of others."""

    unnamed: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)

    def add(self, name: str, answer: "ClassifiedMedia") -> None:
        """Look at the answer to a file."""
        if not answer.label:
            self.unnamed.append(name)
        if answer.silent:
            self.silent.append(name)
        if answer.windows > 1:
            self.long.append(f"{name} ({answer.windows:,} windows)")

    def tell(self, most: float) -> None:
        """Warn of the odd files, if there are any, for a model that reads so many seconds."""
        if self.unnamed:
            count = counted(len(self.unnamed), "files")
            typer.echo(f"heedful: {count} without a class, as none reaches its --threshold", err=True)
        if self.silent:
            typer.echo(
                f"heedful: nothing can be heard in {counted(len(self.silent), 'files')}, to which the model gives a "
                f"class all the same: {', '.join(self.silent)}",
                err=True,
            )
        if self.long:
            typer.echo(
                f"heedful: {counted(len(self.long), 'sounds')} longer than audio.max_seconds = {most:g}: "
                f"read in windows of that length, whose probabilities are averaged; the first: {self.long[0]}",
                err=True,
            )


def rows_of_names(files: Sequence[Path]) -> GivenTexts:
    """Return files as rows with a column for their names."""
    from heedful.data.readers.labelled import WholeRow

    rows = (WholeRow(number, (), (str(file),)) for number, file in enumerate(files, start=1))
    return GivenTexts(rows, len(files), "file", ("file",))


def rows_of_table(table: Path, recipe: "Recipe", field: str | None) -> GivenTexts:
    """Return the rows of a table of files, with all columns of the table.

    Raises:
        InputError: The table cannot be read, has no such column, or no rows.
    """
    from heedful.data.readers.labelled import WholeRow, every_row, names_of_cells

    lines = [file.line or 0 for file in rows_of_files(table, recipe, field)]
    columns = names_of_cells(table, lines[0])
    cells = dict(every_row(table, columns))
    return GivenTexts(
        (WholeRow(line, (), cells[line]) for line in lines), len(lines), "file", columns, separator_of_csv(table)
    )


def word_lists(predictor: "TextPredictor", source: Path | None, field: str | None) -> GivenTexts | None:
    """Read the lists of words in a .jsonl file for a tagger; None for other models, and if the file has none.

    Raises:
        InputError: a line of the file has no list of words, or a word is not a string.
    """
    from heedful.data.readers.tagged import has_word_lists, read_word_lists
    from heedful.predictors.tagger import Tagger

    if source is None or not isinstance(predictor, Tagger) or not has_word_lists(source, field):
        return None
    count = sum(1 for _ in read_word_lists(source, field))
    return GivenTexts(map(as_line, read_word_lists(source, field)), count, "row")


def as_line(row: "TableRow") -> "WholeRow":
    """Return a row of words as one of a single cell, in which spaces are between the words."""
    from heedful.data.readers.labelled import WholeRow

    return WholeRow(row.line, row.texts, ("\t".join(row.texts),))


def as_pretokenized(asked: GivenTexts, predictor: "TextPredictor", source: Path | None) -> GivenTexts:
    """Take the words of each text as spaces separate them, or as a JSON array lists them.

    Raises:
        InputError: the model is not a tagger.
    """
    from heedful.data.readers.tagged import words_in
    from heedful.predictors.tagger import Tagger
    from heedful.text.words import CutText

    if not isinstance(predictor, Tagger):
        raise InputError("--pretokenized is for models that tag words, and this one reads texts; leave it out")

    def rows() -> "Iterator[WholeRow]":
        for row in asked.rows:
            place = place_of(source, row.line)
            texts = (text if isinstance(text, CutText) else words_in(text, place) for text in row.texts)
            yield row._replace(texts=tuple(texts))

    return replace(asked, rows=rows())


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
    and a probability for each class, or the --top-k best of both. On a line of
    other output, a line feed inside an answer is written as \n, a carriage
    return as \r, and a backslash before n, r or a backslash as \\.

    A model of pictures, of sounds or of videos takes files, folders of them,
    and tables that name a file in each row; or names of files on standard
    input, one on a line. Each line of the output is a file, a tab and its class;
    in the name of a file a tab is written as \t, and a line end as \n or \r.
    Files that cannot be read are named at the end.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predictors import Text
    from heedful.predictors.text_predictor import TextPredictor

    check_output(output, source)
    reading = FileOptions(skip_bad, truncated, channel)
    reading.check(model, recipe := recipe_of(model))
    if recipe.data.modality != "text":
        refuse(
            {
                f"{model} reads one file at a time; leave --pair-field out": pair_field,
                f"{model} reads files, not words; leave --pretokenized out": pretokenized,
                f"{model} reads files, not lines; leave --input-format out": input_form,
            }
        )
        source = input_file(text, source, None) if source else None
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
    from heedful.predictors import Text

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
