"""Texts that commands are asked about: lines, or rows of .tsv, .csv and .jsonl files, with or without labels there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import CorpusConfig, Recipe
    from heedful.data.corpus import TableRow


@dataclass(frozen=True)
class GivenTexts:
    """Texts, how many there are if that is known, and what holds each of them, for messages."""

    rows: Iterator["TableRow"]
    count: int | None
    unit: str


def asked_of(given: Iterator["TableRow"], source: Path | None, fields: Sequence[str]) -> GivenTexts:
    """Texts in these columns of a file, if it is a table; otherwise the rows given.

    Raises:
        InputError: the table cannot be read, or has no such column.
    """
    from heedful.data.unlabelled import is_table

    if source is None or not is_table(source):
        return GivenTexts(given, None, "line")
    return table_rows(source, fields)


def table_rows(source: Path, fields: Sequence[str], option: str = "--source-field") -> GivenTexts:
    """Texts in these columns of each row of a table; all are read once before, so that slips are found at once.

    Raises:
        InputError: it cannot be read, or has no such column.
    """
    from heedful.data.filters import DropReport
    from heedful.data.unlabelled import read_texts

    report = DropReport()
    count = sum(1 for _ in read_texts(source, fields, report))
    if "header" in report.counts and not fields[0].isdecimal():
        read = "first column is" if len(fields) == 1 else f"first {len(fields)} columns are"
        typer.echo(
            f"heedful: {source}: its first line is a header without {', '.join(map(repr, fields))}, so the {read} "
            f"read; name others with {option}",
            err=True,
        )
    return GivenTexts(read_texts(source, fields), count, "row")


def whole_lines(lines: Iterable[str]) -> Iterator["TableRow"]:
    """Make each line of a plain text file a row with one text."""
    from heedful.data.corpus import TableRow

    return (TableRow(number, (line,)) for number, line in enumerate(lines, start=1))


def columns_of(recipe: "Recipe") -> "CorpusConfig":
    """The corpus of a recipe whose columns other tables are expected to have."""
    from heedful.config.schema import CorpusConfig

    data = recipe.data
    return next((corpus for corpus in (data.test, data.valid, *data.train) if corpus), CorpusConfig(source=""))


def check_columns(file: Path | None, option: str, *fields: str | None) -> None:
    """Refuse names of columns for a file that has none; `option` names the file.

    Raises:
        InputError: there are such names.
    """
    from heedful.data.unlabelled import is_table

    if any(fields) and (file is None or not is_table(file)):
        named = ", ".join(filter(None, fields))
        lacks = f"there is no {option} FILE" if file is None else f"{option} {file} is no table"
        raise InputError(
            f"columns are named ({named}), but {lacks}; give one whose name ends in .tsv, .csv or .jsonl, or leave "
            "the names of columns out"
        )
