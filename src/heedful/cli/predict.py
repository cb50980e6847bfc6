"""`heedful predict`: classes, numbers, tags or answers for texts, tables, words, and image, audio or video files."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.answering import (
    EMPTY,
    AnswerForm,
    Notes,
    TextCommand,
    answer_files,
    check_use,
    load,
    recipe_of,
    reject_if,
)
from heedful.cli.files import Channel, FileOptions, ReadFiles, SkipBad, Truncated, named_files, rows_of_files
from heedful.cli.inputs import (
    TextRows,
    check_columns,
    columns_of,
    csv_separator,
    input_file,
    place_of,
    texts_argument,
    texts_of,
    warning_if_unknown,
)
from heedful.cli.options import Device, Force, InputForm, Model, Output, PairField, SourceField, TextsOrTable
from heedful.cli.output import check_output, one_line
from heedful.data.readers.labelled import WholeRow, every_row, is_table, names_of_cells
from heedful.data.readers.tagged import has_word_lists, read_word_lists, words_in
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.words import SplitText

if TYPE_CHECKING:
    from heedful.predictors.media_classifier import ClassifiedMedia
    from heedful.predictors.text_predictor import TextPredictor
    from heedful.progress import ProgressReporter

NO_CLASS = "without a class, because none reaches its --threshold"

Threshold = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[CLASS=]P",
        help="Minimum probability for a class to be predicted: with 0.8, a text whose classes are all less probable "
        "gets no class; with CLASS=0.3, CLASS is predicted if its probability is at least 0.3, and otherwise the most "
        "probable of the other classes. Can be repeated.",
        show_default="the most probable class",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k",
        min=1,
        help="Number of classes to write, the most probable first.",
        show_default="all in tables and JSON",
    ),
]


def predict(
    model: Model,
    text: Annotated[
        list[str] | None,
        texts_argument("Texts to classify, score or tag, questions to answer, or image, audio or video files."),
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
            help="For a tagger: each line is already split into words, with spaces or as a JSON array of words.",
        ),
    ] = False,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    channel: Channel = None,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    r"""Classify texts, images, audio or video, score or tag texts, or answer questions; one output line per input.

    What the command does depends on the model's task. For a text pair, or a
    question and the text that contains its answer, put a tab between the two
    on one line. In a table, the command reads the columns that the model's
    recipe names; it ignores other columns, such as labels, and does not treat
    the header as a text. If the table has none of these columns, it reads the
    ones that `heedful init` would choose as text, and reports them. A tagger
    splits a text into words like those of its training data, unless the words
    are given: with --pretokenized, or in a .jsonl file whose lines are or
    contain arrays of words.

    An output file whose name ends in .csv, .tsv or .jsonl is a table: the
    columns of the input, followed by those of the answer; for a classifier,
    the label and a probability for each class or, with --top-k, only the most
    probable classes and their probabilities. In plain-text output, a line feed
    inside an answer is written as \n, a carriage return as \r, and a backslash
    before n, r or a backslash as \\.

    An image, audio or video model takes files, folders of them, and tables
    with a file name in each row; or file names on standard input, one per
    line. Each line of the output is a file, a tab and its class; in a file
    name, a tab is written as \t, and a line break as \n or \r. Files that
    cannot be read are listed at the end.
    """
    reading = FileOptions(skip_bad, truncated, channel)
    check_use(model, recipe := recipe_of(model), "heedful predict")
    reading.check(model, recipe)
    if source_field and source_field == pair_field:
        raise InputError(f"--column and --pair-field are both {pair_field!r}; give two columns")
    if recipe.data.modality == "text":
        command = TextCommand("predicting", text, source, input_form, output, source_field, pair_field, as_json=as_json)
        predict_texts(command, model, device, (source_field, pair_field), (threshold, top_k), pretokenized=pretokenized)
        return
    reject_if(
        {
            f"{model} reads one file at a time; leave --pair-field out": pair_field,
            f"{model} reads files, not words; leave --pretokenized out": pretokenized,
            f"{model} reads files, not lines; leave --input-format out": input_form,
        }
    )
    check_output(output, source, *map(Path, text or ()), as_json=as_json)
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
    """Write the answer for each text or pair in the columns `names`; `decision` holds the thresholds and top-k."""
    from heedful.predictors import Text
    from heedful.predictors.text_predictor import TextPredictor

    loaded = load(model, device)
    predictor, data = loaded.use_as(TextPredictor), loaded.recipe.data
    decide_by(predictor, model, *decision)

    columns = columns_of(loaded.recipe)
    pair = columns.pair_field or find_task(loaded.recipe.task).spec.pair_field or names[1]
    fields = (columns.source_field, *([pair] if pair else []))
    inputs = texts_of(loaded.recipe, *names[: len(fields)], fields=fields)
    rows = word_lists(predictor, command.source, names[0]) or command.rows(inputs, max_texts=2)
    if pretokenized:
        rows = as_pretokenized(rows, predictor, command.source)
    source = loaded.tokenizers.source
    rows = replace(rows, rows=warning_if_unknown(rows.rows, source, lambda row: "\t".join(row.texts)))

    def texts(rows: "Iterator[WholeRow]") -> Iterator[Text]:
        for row in rows:
            text = Text(*row.texts)
            try:
                predictor.check(text)
            except InputError as error:
                raise InputError(f"{place_of(command.source, row.line)}: {error}") from error
            yield text

    def answers(rows: "Iterator[WholeRow]", progress: "ProgressReporter") -> Iterator[Any]:
        return progress.over(predictor.predict_lines(texts(rows)))

    notes = Notes()
    trained_on = len(fields) if data.train else 2  # texts per example in training; up to 2 for a converted model

    def note(row: "WholeRow", answer: Any) -> None:
        location = f"line {row.line:,}"
        truncation = f"texts truncated to the {data.max_length:,} tokens that the model can read"
        notes.add(truncation, location, getattr(answer, "truncated", False))
        pairs = "lines read as text pairs, because they contain a tab, although the model was trained on single texts"
        notes.add(pairs, location, len(row.texts) > trained_on)
        singles = "lines read as single texts, although the model was trained on text pairs"
        notes.add(singles, location, data.train and len(row.texts) < trained_on)
        notes.add(EMPTY, location, not all(part.strip() for part in row.texts))
        notes.add(f"texts {NO_CLASS}", location, getattr(answer, "label", None) == "")

    form = AnswerForm[Any](
        columns=predictor.columns,
        line=lambda answer: one_line(predictor.line(answer)),
        cells=predictor.cells,
        json=asdict,
    )
    notes.warn(command.answer(rows, answers, form, note))


def word_lists(predictor: "TextPredictor", source: Path | None, field: str | None) -> TextRows | None:
    """Read the word lists in a .jsonl file for a tagger; return None for other models, or if the file has none."""
    from heedful.predictors.tagger import Tagger

    if source is None or not isinstance(predictor, Tagger) or not has_word_lists(source, field):
        return None
    count = sum(1 for _ in read_word_lists(source, field))
    rows = (WholeRow(row.line, row.texts, ("\t".join(row.texts),)) for row in read_word_lists(source, field))
    return TextRows(rows, count, "row")


def as_pretokenized(rows: TextRows, predictor: "TextPredictor", source: Path | None) -> TextRows:
    """Split each text into words at spaces, or parse it as a JSON array of words."""
    from heedful.predictors.tagger import Tagger

    if not isinstance(predictor, Tagger):
        raise InputError("--pretokenized is for taggers, but this model reads whole texts; leave it out")

    def cut_rows() -> "Iterator[WholeRow]":
        for row in rows.rows:
            location = place_of(source, row.line)
            texts = (text if isinstance(text, SplitText) else words_in(text, location) for text in row.texts)
            yield row._replace(texts=tuple(texts))

    return replace(rows, rows=cut_rows())


def predict_files(
    model: str,
    inputs: tuple[list[str], Path | None, str | None],
    output: Path | None,
    device: str,
    reading: FileOptions,
    decision: tuple[list[str] | None, int | None],
    *,
    as_json: bool,
) -> None:
    """Write the class of each file, in order; files that cannot be read are listed at the end.

    `inputs` holds the names of files, folders and tables, the table of --input, and that table's column of file
    names.
    """
    from heedful.predictors.media_classifier import MediaClassifier

    names, source, column = inputs
    if source and not is_table(source):
        raise InputError(
            f"--input {source}: {model} reads files, not lines; give the files as arguments, or in a table whose name "
            "ends in .tsv, .csv or .jsonl"
        )
    loaded = reading.applied(model, load(model, device))
    predictor = loaded.use_as(MediaClassifier)
    decide_by(predictor, model, *decision)
    rows = None
    table = (source or Path(names[0])) if len(names) + bool(source) == 1 else None
    if table and table.is_file() and is_table(table):  # the output has all columns of a table that is the only input
        listed = rows_of_files(table, loaded.recipe, column, has_option=bool(source))
        paths, lines = [file.path for file in listed], [file.line or 0 for file in listed]
        columns = names_of_cells(table, lines[0])
        cells = dict(every_row(table, columns))
        file_rows = (WholeRow(line, (), cells[line]) for line in lines)
        rows = TextRows(file_rows, len(lines), "file", columns, csv_separator(table))
    else:
        paths = named_files(names or ["-"], loaded.recipe) if names or not source else []
        paths += [file.path for file in rows_of_files(source, loaded.recipe, column)] if source else []
    files = ReadFiles(paths, predictor.reader.parts)
    check_output(output, *paths)

    notes = Notes()
    seconds = loaded.recipe.audio.max_seconds

    def note(name: str, answer: "ClassifiedMedia") -> None:
        notes.add(f"files {NO_CLASS}", name, not answer.label)
        notes.add("silent files, for which the model predicts a class anyway", name, answer.silent)
        longer = f"files longer than audio.max_seconds = {seconds:g}, read in windows whose probabilities are averaged"
        notes.add(longer, f"{name}, {answer.windows:,} windows", answer.windows > 1)

    def fields(answer: "ClassifiedMedia") -> dict[str, object]:
        fields: dict[str, object] = {"label": answer.label, "probabilities": answer.probabilities}
        if answer.windows > 1:
            fields["windows"] = answer.windows
        if answer.silent:
            fields["silent"] = True
        return fields

    rule = predictor.decision
    form = AnswerForm[Any](rule.columns(predictor.labels), rule.line, rule.cells, fields)
    answer_files("predicting", files, predictor.answers(files), form, output, rows, note, as_json=as_json)
    notes.warn(len(files.read))
    files.check(skip_bad=reading.skip_bad)


def decide_by(predictor: object, model: str, threshold: list[str] | None, top_k: int | None) -> None:
    from heedful.predictors.classifier import Classifier, decision_of
    from heedful.predictors.media_classifier import MediaClassifier

    if not threshold and top_k is None:
        return
    if not isinstance(predictor, Classifier | MediaClassifier):
        option = "--threshold" if threshold else "--top-k"
        raise InputError(f"{option} is for classifiers, but {model} does not predict classes; leave it out")
    predictor.decide_by(decision_of(threshold or (), top_k, predictor.labels))
