"""The driver of all commands that answer: it reads inputs, has them answered in order, and writes and counts answers.

A command declares its options, loads a predictor, and says in an `AnswerForm` what the predictor's answers look like.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import typer

from heedful.cli.inputs import (
    TextRows,
    check_columns,
    input_file,
    input_lines,
    is_typed,
    line_rows,
    progress_of,
    shows_bar,
    table_rows,
)
from heedful.cli.options import InputFormat
from heedful.cli.output import (
    Results,
    check_json_output,
    check_output,
    json_of_files,
    one_cell,
    writing_answers,
)
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.schema import DecodeConfig, Recipe
from heedful.data.readers.labelled import WholeRow, is_table
from heedful.data.readers.text_columns import WantedTexts
from heedful.errors import InputError
from heedful.progress import ProgressReporter, show_progress
from heedful.storage.manifest import read_manifest

if TYPE_CHECKING:
    from heedful.checkpoint.load import LoadedModel
    from heedful.cli.files import ReadFiles
    from heedful.predictors.outputs import CutOutputs

A = TypeVar("A")


class AnswerForm(NamedTuple, Generic[A]):
    """What answers look like: as a line, as cells of a table with these columns, and as JSON."""

    columns: tuple[str, ...]
    line: Callable[[A], str]
    cells: Callable[[A], dict[str, object]]
    json: Callable[[A], Any]


class TextCommand:
    """One use of a command that answers texts: its input, its output, and how answers are written.

    It is made before a model is loaded, so that errors in options and files show at once. `fields` are the columns that
    options name.
    """

    def __init__(
        self,
        work: str,
        texts: list[str] | None,
        source: Path | None,
        form: InputFormat | None,
        output: Path | None,
        *fields: str | None,
        as_json: bool = False,
    ) -> None:
        check_output(output, source)
        check_json_output(output, as_json=as_json)
        self.source = input_file(texts, source, form)
        check_columns(self.source, "--input", *fields)
        self.work = work
        self.texts = texts
        self.output = output
        self.as_json = as_json
        self.is_typed = is_typed(texts, self.source)

    def lines(self) -> Iterable[str]:
        """The texts of the command line, or the lines of the file or of standard input."""
        return input_lines(self.texts, self.source)

    def rows(self, lines: Iterable[str], wanted: "WantedTexts", most: int = 1) -> TextRows:
        """The rows of the input if it is a table, or else one for each line, with up to `most` texts."""
        if self.source and is_table(self.source):
            return table_rows(self.source, wanted)
        return line_rows(lines, self.source, most)

    @contextmanager
    def writing(
        self, rows: TextRows, columns: Sequence[str], unit: str | None = None, each: int = 1
    ) -> Iterator[tuple[ProgressReporter, Results]]:
        """Show the progress of the command and open its output, for `each` answers to a row."""
        unit = unit or f"{rows.unit}s"
        columns = () if self.as_json else columns
        with (
            progress_of(self.work, self.texts, self.source, self.output, unit, each, rows.count) as progress,
            writing_answers(self.output, self.source, rows, columns, each=each) as results,
        ):
            yield progress, results

    def answer(
        self,
        rows: TextRows,
        predict: "Callable[[Iterator[WholeRow], ProgressReporter], Iterable[A]]",
        form: AnswerForm[A],
        note: "Callable[[WholeRow, A], object]" = lambda *_: None,
        unit: str | None = None,
        each: int = 1,
    ) -> int:
        """Write `each` answers to every row, in order; `note` gets each with its row. Return the number of rows."""
        inputs, read = tee(rows.rows)
        with self.writing(rows, form.columns, unit, each) as (progress, results):
            answers = predict(read, progress)
            for row, answer in zip((row for row in inputs for _ in range(each)), answers, strict=True):
                line = json.dumps(form.json(answer), ensure_ascii=False) if self.as_json else form.line(answer)
                results.write_answer(row.cells, line, form.cells(answer))
                note(row, answer)
        return results.lines


def answer_files(
    work: str,
    files: "ReadFiles[Any]",
    answers: Iterable[A],
    form: AnswerForm[A],
    output: Path | None,
    rows: TextRows | None = None,
    note: Callable[[str, A], object] = lambda *_: None,
    *,
    as_json: bool,
) -> None:
    """Write the answer to each file that can be read, in order: its name, a tab and a text, or a row of a table.

    `rows` are those of a table that names all files; None: a row has the name of its file only.
    """
    if rows is None:
        file_rows = (WholeRow(number, (), (str(file),)) for number, file in enumerate(files.files, start=1))
        rows = TextRows(file_rows, len(files.files), "file", ("file",))
    columns = () if as_json else form.columns
    with (
        show_progress(work, "files", len(files.files), bar=shows_bar(output)) as progress,
        writing_answers(output, None, rows, columns) as results,
    ):
        every = list(rows.rows)
        for number, answer in enumerate(progress.over(answers)):
            name = str(files.read[number])
            line = (
                json_of_files({"file": name, **form.json(answer)})
                if as_json
                else f"{one_cell(name)}\t{form.line(answer)}"
            )
            results.write_answer(every[files.places[number]].cells, line, form.cells(answer))
            note(name, answer)


def load(model: str, device: str, precision: str = "float32") -> "LoadedModel":
    from heedful.checkpoint.load import load_model
    from heedful.machine import prepare_process

    prepare_process()
    return load_model(model, device, precision)


def recipe_of(model: str) -> "Recipe":
    """Read the recipe that a model was trained with, given its folder or name."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.model_folder import read_description

    return read_description(read_manifest(find_model(model)))[0]


def refuse(problems: dict[str, object]) -> None:
    """Raise an InputError with the first message whose condition holds."""
    for message, holds in problems.items():
        if holds:
            raise InputError(message)


def settings(**options: object) -> dict[str, Any]:
    """The settings that options change: those that are given."""
    return {key: value for key, value in options.items() if value is not None}


def changed(loaded: "LoadedModel", table: str, changes: dict[str, Any]) -> "Recipe":
    """Return the recipe of a loaded model with some keys of one table changed, such as those of [decode]."""
    values = recipe_to_dict(loaded.recipe)
    return recipe_from_dict(values | {table: values[table] | changes}, f"{loaded.path}, with these options")


def check_n_best(n_best: int | None, what: str, *, as_json: bool) -> None:
    if n_best and n_best > 1 and not as_json:
        raise InputError(f"--n-best {n_best}: plain output is one {what} a line; add --json")


def warn_of_cut_outputs(outputs: "CutOutputs", config: "DecodeConfig", positions: int | None) -> None:
    """Warn of outputs that reached their length limit; `positions` are those that the decoder learns, if any."""
    if line := outputs.line(config, positions, "--max-extra"):
        typer.echo(f"heedful: {line}", err=True)
