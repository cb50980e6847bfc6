"""`heedful predict` with a model of pictures, sounds or videos: the class of each file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.decision_options import decide_by
from heedful.cli.files import FileOptions, ReadFiles, files_in_table, named_files, rows_of_files
from heedful.cli.inputs import shows_bar
from heedful.cli.output import check_output, json_of_files
from heedful.cli.table_output import check_json_output, one_cell, writing_answers
from heedful.cli.tables import GivenTexts, separator_of_csv
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.predict.media_classifier import ClassifiedMedia


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
    from heedful.data.readers.unlabelled import is_table
    from heedful.machine import prepare_process
    from heedful.predict.media_classifier import MediaClassifier

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
    from heedful.data.readers.whole_rows import WholeRow

    rows = (WholeRow(number, (), (str(file),)) for number, file in enumerate(files, start=1))
    return GivenTexts(rows, len(files), "file", ("file",))


def rows_of_table(table: Path, recipe: "Recipe", field: str | None) -> GivenTexts:
    """Return the rows of a table of files, with all columns of the table.

    Raises:
        InputError: The table cannot be read, has no such column, or no rows.
    """
    from heedful.data.readers.whole_rows import WholeRow, every_row, names_of_cells

    lines = [file.line or 0 for file in rows_of_files(table, recipe, field)]
    columns = names_of_cells(table, lines[0])
    cells = dict(every_row(table, columns))
    return GivenTexts(
        (WholeRow(line, (), cells[line]) for line in lines), len(lines), "file", columns, separator_of_csv(table)
    )
