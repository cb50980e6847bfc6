"""`heedful predict`: classes, numbers, tags or answers for texts, tables, words, and files of images or audio."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.answering import AnswerForm, TextCommand, answer_files, load, recipe_of, refuse
from heedful.cli.files import (
    Channel,
    FileOptions,
    ReadFiles,
    SkipBad,
    Truncated,
    named_files,
    rows_of_files,
)
from heedful.cli.inputs import (
    TextRows,
    check_columns,
    columns_of,
    input_file,
    place_of,
    separator_of_csv,
    texts_argument,
    wanted_texts,
    warning_if_unknown,
)
from heedful.cli.options import Device, Force, InputForm, Model, Output, PairField, SourceField, TextsOrTable
from heedful.cli.output import check_json_output, check_output, one_line
from heedful.config.schema import Recipe
from heedful.data.readers.labelled import WholeRow, every_row, is_table, names_of_cells
from heedful.data.readers.tagged import has_word_lists, read_word_lists, words_in
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.words import CutText
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.media_classifier import ClassifiedMedia
    from heedful.predictors.text_predictor import TextPredictor
    from heedful.progress import ProgressReporter


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


def predict(
    model: Model,
    text: Annotated[
        list[str] | None,
        texts_argument("Texts to classify, score or tag, questions to answer, or files of pictures, sounds or videos."),
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
    reading = FileOptions(skip_bad, truncated, channel)
    reading.check(model, recipe := recipe_of(model))
    if recipe.data.modality == "text":
        command = TextCommand("predicting", text, source, input_form, output, source_field, pair_field, as_json=as_json)
        predict_texts(command, model, device, (source_field, pair_field), (threshold, top_k), pretokenized=pretokenized)
        return
    refuse(
        {
            f"{model} reads one file at a time; leave --pair-field out": pair_field,
            f"{model} reads files, not words; leave --pretokenized out": pretokenized,
            f"{model} reads files, not lines; leave --input-format out": input_form,
        }
    )
    check_output(output, source, *map(Path, text or ()))
    check_json_output(output, as_json=as_json)
    source = input_file(text, source, None) if source else None
    check_columns(source, "--input", source_field)
    files = (text or [], source, source_field)
    predict_files(model, files, output, device, reading, (threshold, top_k), as_json=as_json)


def predict_texts(
    command: TextCommand,
    model: str,
    device: str,
    names: tuple[str | None, str | None],
    decision: tuple[list[str] | None, int | None],
    *,
    pretokenized: bool,
) -> None:
    """Write the answer to each text or pair; `names` are the columns of both, and `decision` is as in `decide_by`."""
    from heedful.predictors import Text
    from heedful.predictors.text_predictor import TextPredictor

    lines = command.lines()
    loaded = load(model, device)
    predictor = loaded.use_as(TextPredictor)
    decide_by(predictor, model, *decision)

    columns = columns_of(loaded.recipe)
    pair = columns.pair_field or find_task(loaded.recipe.task).pair_field or names[1]
    fields = (columns.source_field, *([pair] if pair else []))
    inputs = wanted_texts(loaded.recipe, *names[: len(fields)], fields=fields)
    rows = word_lists(predictor, command.source, names[0]) or command.rows(lines, inputs, most=2)
    if pretokenized:
        rows = as_pretokenized(rows, predictor, command.source)
    known = warning_if_unknown(rows.rows, loaded.tokenizers.source, lambda row: "\t".join(row.texts))
    rows = replace(rows, rows=known)
    odd = OddTexts(len(fields) if loaded.recipe.data.train else 2)

    def answers(read: "Iterator[WholeRow]", progress: "ProgressReporter") -> Iterator[Any]:
        return progress.over(predictor.predict_lines(readable(read)))

    def readable(read: "Iterator[WholeRow]") -> Iterator[Text]:
        for row in read:
            text = Text(*row.texts)
            try:
                predictor.check(text)
            except InputError as error:
                raise InputError(f"{place_of(command.source, row.line)}: {error}") from error
            yield text

    form = AnswerForm[Any](
        columns=predictor.columns,
        line=lambda answer: one_line(predictor.line(answer)),
        cells=predictor.cells,
        json=asdict,
    )
    count = command.answer(rows, answers, form, odd.add)
    odd.warn(loaded.recipe.data.max_length, count)


@dataclass
class OddTexts:
    """Lines of input texts of which the answers mean less than those of others."""

    trained_on: int  # texts that the model has learned to read together; 2 for models that were trained elsewhere
    cut: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    unnamed: list[int] = field(default_factory=list)

    def add(self, row: "WholeRow", answer: object) -> None:
        if getattr(answer, "truncated", False):
            self.cut.append(row.line)
        if not all(part.strip() for part in row.texts):
            self.empty.append(row.line)
        if len(row.texts) > self.trained_on:
            self.pairs.append(row.line)
        if getattr(answer, "label", None) == "":
            self.unnamed.append(row.line)

    def warn(self, longest: int, count: int) -> None:
        """Warn of the odd texts, if there are any, for a model that reads `longest` tokens, among `count` texts."""
        for what, lines in (
            (f"texts longer than the {longest:,} tokens that the model reads, and cut to that", self.cut),
            ("pairs, as a tab makes two texts, for a model that was trained on single texts", self.pairs),
            ("empty texts, of which the results mean nothing", self.empty),
            ("texts without a class, as none reaches its --threshold", self.unnamed),
        ):
            if lines:
                typer.echo(f"heedful: {what}: {len(lines):,} of {count:,} (first: line {lines[0]:,})", err=True)


def word_lists(predictor: "TextPredictor", source: Path | None, field: str | None) -> TextRows | None:
    """Read the lists of words in a .jsonl file for a tagger; None for other models, and if the file has none."""
    from heedful.predictors.tagger import Tagger

    if source is None or not isinstance(predictor, Tagger) or not has_word_lists(source, field):
        return None
    count = sum(1 for _ in read_word_lists(source, field))
    rows = (WholeRow(row.line, row.texts, ("\t".join(row.texts),)) for row in read_word_lists(source, field))
    return TextRows(rows, count, "row")


def as_pretokenized(rows: TextRows, predictor: "TextPredictor", source: Path | None) -> TextRows:
    """Take the words of each text as spaces separate them, or as a JSON array lists them."""
    from heedful.predictors.tagger import Tagger

    if not isinstance(predictor, Tagger):
        raise InputError("--pretokenized is for models that tag words, and this one reads texts; leave it out")

    def cut_rows() -> "Iterator[WholeRow]":
        for row in rows.rows:
            place = place_of(source, row.line)
            texts = (text if isinstance(text, CutText) else words_in(text, place) for text in row.texts)
            yield row._replace(texts=tuple(texts))

    return replace(rows, rows=cut_rows())


def predict_files(
    model: str,
    files: tuple[list[str], Path | None, str | None],
    output: Path | None,
    device: str,
    reading: FileOptions,
    decision: tuple[list[str] | None, int | None],
    *,
    as_json: bool,
) -> None:
    """Write the class of each file, in order; files that cannot be read are named at the end.

    `files` are names of files, folders and tables, a further table, and the column of that table that names files.
    """
    from heedful.predictors.media_classifier import MediaClassifier

    names, source, column = files
    if source and not is_table(source):
        raise InputError(
            f"--input {source}: {model} reads files, not lines; name them after the options, or in a table whose name "
            "ends in .tsv, .csv or .jsonl"
        )
    loaded = reading.applied(model, load(model, device))
    predictor = loaded.use_as(MediaClassifier)
    decide_by(predictor, model, *decision)
    paths = named_files(names or ["-"], loaded.recipe) if names or not source else []
    if source:
        paths += [file.path for file in rows_of_files(source, loaded.recipe, column)]
    media = ReadFiles(paths, predictor.reader.parts)
    check_output(output, *paths)

    only = (source or Path(names[0])) if len(names) + bool(source) == 1 else None
    rows = rows_of_table(only, loaded.recipe, column) if only and is_table(only) else None
    by = predictor.decision
    form = AnswerForm[Any](by.columns(predictor.labels), by.line, by.cells, file_fields)
    odd = OddFiles()
    answer_files("predicting", media, predictor.answers(media), form, output, rows, odd.add, as_json=as_json)
    odd.warn(loaded.recipe.audio.max_seconds)
    media.check(skip_bad=reading.skip_bad)


def rows_of_table(table: Path, recipe: "Recipe", field: str | None) -> TextRows:
    """Return the rows of a table of files, with all columns of the table."""
    lines = [file.line or 0 for file in rows_of_files(table, recipe, field)]
    columns = names_of_cells(table, lines[0])
    cells = dict(every_row(table, columns))
    rows = (WholeRow(line, (), cells[line]) for line in lines)
    return TextRows(rows, len(lines), "file", columns, separator_of_csv(table))


def file_fields(answer: "ClassifiedMedia") -> dict[str, object]:
    fields: dict[str, object] = {"label": answer.label, "probabilities": answer.probabilities}
    if answer.windows > 1:
        fields["windows"] = answer.windows
    if answer.silent:
        fields["silent"] = True
    return fields


@dataclass
class OddFiles:
    """Names of files of which the answers mean less than those of others."""

    unnamed: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)

    def add(self, name: str, answer: "ClassifiedMedia") -> None:
        if not answer.label:
            self.unnamed.append(name)
        if answer.silent:
            self.silent.append(name)
        if answer.windows > 1:
            self.long.append(f"{name} ({answer.windows:,} windows)")

    def warn(self, seconds: float) -> None:
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
                f"heedful: {counted(len(self.long), 'sounds')} longer than audio.max_seconds = {seconds:g}: "
                f"read in windows of that length, whose probabilities are averaged; the first: {self.long[0]}",
                err=True,
            )


def decide_by(predictor: object, model: str, threshold: list[str] | None, top_k: int | None) -> None:
    from heedful.predictors.classifier import Classifier, decision_of
    from heedful.predictors.media_classifier import MediaClassifier

    if not threshold and top_k is None:
        return
    if not isinstance(predictor, Classifier | MediaClassifier):
        option = "--threshold" if threshold else "--top-k"
        raise InputError(f"{option} is for classifiers, and {model} does not predict classes; leave it out")
    predictor.decide_by(decision_of(threshold or (), top_k, predictor.labels))
