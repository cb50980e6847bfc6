"""Shared steps of the commands that run a predictor: read inputs, pass them to it, and write its answers.

A command declares its options, loads a predictor, and describes in an `AnswerForm` how the predictor's answers are
written.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

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
from heedful.cli.output import Results, check_output, one_cell, to_json, warn, writing_results
from heedful.config.schema import Recipe
from heedful.data.readers.files import ending_of
from heedful.data.readers.labelled import WholeRow, is_table
from heedful.data.readers.text_columns import TextRequest
from heedful.errors import InputError
from heedful.progress import ProgressReporter, show_progress
from heedful.storage.complete_folder import read_manifest

if TYPE_CHECKING:
    from heedful.checkpoint.load import LoadedModel
    from heedful.cli.files import ReadFiles
    from heedful.predictors.outputs import CutOutputs

A = TypeVar("A")

EMPTY = "empty texts, whose results are meaningless"
MAX_LOCATIONS = 3  # lines or files that a warning lists


class AnswerForm(NamedTuple, Generic[A]):
    """Functions that format an answer as a line of text, as cells of a table with `columns`, or as JSON."""

    columns: tuple[str, ...]
    line: Callable[[A], str]
    cells: Callable[[A], dict[str, object]]
    json: Callable[[A], Any]


class TextCommand:
    """One run of a command that computes an answer for each input text: its input, its output, and its options.

    It is created before a model is loaded, so that errors in options and files are reported at once. `columns` are the
    table columns given as options. With `may_name_files`, a text may be a file name.
    """

    def __init__(
        self,
        work: str,
        texts: list[str] | None,
        source: Path | None,
        form: InputFormat | None,
        output: Path | None,
        *columns: str | None,
        as_json: bool = False,
        may_name_files: bool = False,
    ) -> None:
        check_output(output, source, as_json=as_json)
        self.source = input_file(texts, source, form)
        if source and ending_of(source) == ".json" and not form:
            raise InputError(
                f"--input {source}: a .json file is read neither as lines nor as a table; if each line is an object, "
                "give --input-format jsonl, or if it is a text, --input-format lines"
            )
        check_columns(self.source, "--input", *columns)
        self.work = work
        self.texts = texts
        self.output = output
        self.as_json = as_json
        self.is_typed = is_typed(texts, self.source)
        self.lines = texts if texts and may_name_files else input_lines(texts, self.source)

    def rows(self, texts: "TextRequest", max_texts: int = 1) -> TextRows:
        """Return the rows of a table or, for other input, one row per line, with up to `max_texts` texts each."""
        if self.source and is_table(self.source):
            return table_rows(self.source, texts)
        return line_rows(self.lines, self.source, max_texts)

    @contextmanager
    def writing(
        self, rows: TextRows, columns: Sequence[str], unit: str | None = None, each: int = 1
    ) -> Iterator[tuple[ProgressReporter, Results]]:
        """Show the progress of the command and open its output, for `each` answers per row."""
        unit = unit or f"{rows.unit}s"
        columns = () if self.as_json else columns
        with (
            progress_of(self.work, self.texts, self.source, self.output, unit, each, rows.count) as progress,
            writing_results(self.output, self.source, each, rows, columns) as results,
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
        """Write `each` answers for every row, in order, and call `note` with the row and each answer.

        Return the number of rows.
        """
        inputs, copies = tee(rows.rows)
        with self.writing(rows, form.columns, unit, each) as (progress, results):
            answers = predict(copies, progress)
            for row, answer in zip((row for row in inputs for _ in range(each)), answers, strict=True):
                line = to_json(form.json(answer)) if self.as_json else form.line(answer)
                results.write_answer(row.cells, line, form.cells(answer))
                note(row, answer)
        return results.lines


def answer_files(
    work: str,
    files: "ReadFiles[Path, Any]",
    answers: Iterable[A],
    form: AnswerForm[A],
    output: Path | None,
    rows: TextRows | None = None,
    note: Callable[[str, A], object] = lambda *_: None,
    *,
    as_json: bool,
) -> None:
    """Write the answer for each readable file, in order, as its name, a tab and a text; as a table row; or as JSON.

    `rows` are the rows of a table that lists all files; if None, each row contains only a file name.
    """
    if rows is None:
        file_rows = (WholeRow(number, (), (str(file),)) for number, file in enumerate(files.files, start=1))
        rows = TextRows(file_rows, len(files.files), "file", ("file",))
    with (
        show_progress(work, "files", len(files.files), bar=shows_bar(output)) as progress,
        writing_results(output, None, rows=rows, columns=() if as_json else form.columns) as results,
    ):
        row_of = list(rows.rows)
        for number, answer in enumerate(progress.over(answers)):
            name = str(files.read[number])
            facts = {"file": name, **form.json(answer)} if as_json else {}
            line = to_json(facts) if as_json else f"{one_cell(name)}\t{form.line(answer)}"
            results.write_answer(row_of[files.indices[number]].cells, line, form.cells(answer))
            note(name, answer)


class Notes:
    """Lines or files of the input that need a warning, grouped by problem."""

    def __init__(self) -> None:
        self.locations: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, problem: str, location: str, applies: object = True) -> None:
        if applies:
            self.locations[problem].append(location)

    def warn(self, count: int) -> None:
        """Print a warning for each problem: how many of `count` lines or files have it, and the first few."""
        for problem, locations in self.locations.items():
            first = "first: " if len(locations) > MAX_LOCATIONS else ""
            warn(f"{problem}: {len(locations):,} of {count:,} ({first}{', '.join(locations[:MAX_LOCATIONS])})")


def load(model: str, device: str, *others: str) -> "LoadedModel":
    """Load a model or, if there are others, an ensemble."""
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process

    prepare_process()
    if not others:
        return load_model(model, device)
    from heedful.checkpoint.ensemble import load_ensemble

    return load_ensemble([model, *others], device)


def recipe_of(model: str) -> "Recipe":
    """Return the recipe of a model, given the model's folder or name."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.description import read_description

    return read_description(read_manifest(find_model(model)))[0]


def check_use(model: str, recipe: "Recipe", command: str) -> None:
    """Reject a model that is used with another command, before the options are checked, which may not fit it either."""
    from heedful.tasks import find_task
    from heedful.tasks.specs import kind_of_model

    own = find_task(recipe.task).spec.command
    if own not in ("", command):
        raise InputError(f"{model} is {kind_of_model(recipe.task)}; use it with `{own}`")


def reject_if(problems: dict[str, object]) -> None:
    """Raise an InputError with the first message whose condition holds."""
    for message, holds in problems.items():
        if holds:
            raise InputError(message)


def settings(options: Mapping[str, Any], *tables: type) -> dict[str, Any]:
    """Return the given options that override settings of the same name in these tables of a recipe."""
    names = (each.name for table in tables for each in fields(table))
    return {name: options[name] for name in names if options.get(name) not in (None, [])}


def check_n_best(n_best: int | None, what: str, *, as_json: bool) -> None:
    if n_best and n_best > 1 and not as_json:
        raise InputError(f"--n-best {n_best}: plain output has one {what} per line; add --json")


def warn_of_cut_outputs(outputs: "CutOutputs", writer: Any) -> None:
    """Warn about outputs of a `Translator`, `Captioner` or `Transcriber` that reached their length limit."""
    if line := outputs.line(writer.config, writer.model.max_target_positions(), "--max-extra"):
        warn(line)
