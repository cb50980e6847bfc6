"""Which columns of a table hold the texts that a model reads: one rule for all commands, with that of `heedful init`.

1. The columns that options name.
2. Otherwise the columns that the recipe names, which are numbers in a table without a header.
3. Otherwise the columns that `init` takes for text, where that is not in doubt.

A recipe may name columns by number, or by default, so that the first are meant. If they hold labels, and others hold
text, as in a table whose label comes first, these are read.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.config.schema import DataConfig
from heedful.data.readers.columns import (
    LABEL_NAMES,
    OTHER_NAMES,
    PAIR_NAMES,
    TEXT_NAMES,
    Column,
    columns_of,
    has_header,
)
from heedful.data.readers.files import decode_lines, ending_of, open_bytes
from heedful.data.readers.rows import (
    USUAL_FIELDS,
    cells_of,
    check_objects,
    find_name,
    folded,
    hint_of_name,
    names_columns,
    parse_object,
)
from heedful.errors import InputError
from heedful.text.languages import base_language, language_called


@dataclass(frozen=True)
class WantedTexts:
    """What is known of the texts that a command reads from a table.

    Attributes:
        fields: The names of the columns in the recipe: one for each text of a row.
        named: The names that options give, as many; None where there is none.
        labels: The classes of the model; a column of nothing else does not hold texts.
        target: The name of the recipe's column of labels or of expected texts.
        language: The language of the texts, as a code, or "src" if the recipe does not say.
        usual: Usual names of such columns, in lower case, of which one is taken if several may hold texts.
        option: The option that names a column, for messages.
        turns: True if a text may be a list of turns in JSON, as for a model of dialogues.
    """

    fields: tuple[str, ...]
    named: tuple[str | None, ...] = ()
    labels: Collection[str] = ()
    target: str | None = None
    language: str = "src"
    usual: Collection[str] = TEXT_NAMES
    option: str = "--column"
    turns: bool = False


@dataclass(frozen=True)
class ChosenColumns:
    """Columns of a table to read, by name or number, and whether they are a guess that the user should hear of."""

    fields: tuple[str, ...]
    guessed: bool = False


def choose_columns(path: Path, wanted: WantedTexts) -> ChosenColumns:
    """Choose the columns of a table that hold the texts that a command reads, by the rule of this module."""
    if ending_of(path) == ".jsonl":
        check_objects(path, "error")
    known = first_names(path)
    if any(wanted.named):
        pairs = zip(wanted.named, wanted.fields, strict=True)
        named = tuple(existing(name or field, known, path, wanted.option) for name, field in pairs)
        return ChosenColumns(by_name(named, known) if names_columns(wanted.fields, known) else named)
    if names_columns(wanted.fields, known) and all(find_name(field, known) is not None for field in wanted.fields):
        return ChosenColumns(wanted.fields)
    columns = columns_of(path, DataConfig())
    has_keys = ending_of(path) == ".jsonl"
    by_place = None if has_keys or has_header(path) else places(wanted, len(columns))
    if len(columns) == len(wanted.fields):
        return ChosenColumns(by_place or fields_of(columns, columns, has_keys=has_keys))
    found = guess(columns, wanted)
    texts = None if found is None else fields_of(found, columns, has_keys=has_keys)
    meant = [columns[int(place) - 1] for place in by_place or ()]
    if by_place and is_plausible(meant, wanted, sure=texts in (None, by_place)):
        return ChosenColumns(by_place)
    if texts is None:
        raise InputError(
            f"{path}: {doubt(wanted, by_place, columns)}; it has {', '.join(map(str, columns[:12]))}. Name the column "
            f"of the text with {wanted.option}"
        )
    return ChosenColumns(texts, guessed=True)


def first_names(path: Path) -> list[str]:
    """Return the cells of the first row of a table, or the keys of the first object, which may be names of columns."""
    if ending_of(path) != ".jsonl":
        return next((cells for _, cells in cells_of(path, "replace") if cells is not None), [])
    with open_bytes(path) as stream:
        line = next(decode_lines(stream, str(path), bad_utf8="replace"), None)
    return list(parse_object(line, f"{path}, line 1")) if line else []


def existing(name: str, known: Sequence[str], path: Path, option: str) -> str:
    """Return the name of a column as the table has it, or the number of a column."""
    if name.isdecimal():
        return name
    meant = find_name(name, known)
    if meant is None:
        raise InputError(
            f"{path}: no column is named {name!r}{hint_of_name(name, known)}; it has "
            f"{', '.join(map(repr, known[:20]))}. Name one of them with {option}, or a number from 1"
        )
    return meant


def by_name(fields: Sequence[str], header: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns for their numbers, where the first row is known to be a header and has them."""
    names = {
        str(number): name
        for number, name in enumerate(header, start=1)
        if header.count(name) == 1 and not name.strip().isdecimal()
    }
    return tuple(names.get(field) or field for field in fields)


def places(wanted: WantedTexts, width: int) -> tuple[str, ...] | None:
    """Return the numbers of the columns that a recipe means in a table without a header; None if it gives names."""
    if all(field.isdecimal() for field in wanted.fields):
        return wanted.fields if all(0 < int(field) <= width for field in wanted.fields) else None
    if wanted.fields in USUAL_FIELDS and len(wanted.fields) <= width:
        return tuple(str(number) for number, _ in enumerate(wanted.fields, start=1))
    return None


def is_plausible(columns: Sequence[Column], wanted: WantedTexts, *, sure: bool) -> bool:
    """True if columns that a recipe means by their place may hold texts.

    A column of numbers, or of nothing but classes of the model, does not. Nor does one of few different short values,
    as of labels, unless there are no other columns of texts, which is `sure`.
    """
    return not any(
        column.all_numbers or is_of_classes(column, wanted) or (column.is_label and not sure) for column in columns
    )


def is_of_classes(column: Column, wanted: WantedTexts) -> bool:
    """True if each value of a column is a class of the model, whatever its case."""
    classes = set(map(folded, wanted.labels))
    return bool(classes) and {folded(value) for value in column.values} <= classes


def guess(columns: Sequence[Column], wanted: WantedTexts) -> list[Column] | None:
    """Guess the columns of texts, as many as are wanted, as `heedful init` would; None if it is in doubt."""
    count = len(wanted.fields)
    rest = [column for column in columns if may_be_text(column, wanted)]
    texts = [column for column in rest if column.is_text] or rest
    rounds = (
        of_language(rest, wanted.language),
        texts,
        called(rest, TEXT_NAMES | PAIR_NAMES),
        called(texts, wanted.usual),
        called(rest, wanted.usual),
    )
    for candidates in rounds:
        if len(candidates) == count:
            return sorted(candidates, key=is_second)
    return None


def fields_of(found: Sequence[Column], columns: Sequence[Column], *, has_keys: bool) -> tuple[str, ...]:
    """Return what names some of the columns: the name or, if it would be read as a place, the number of the column."""
    numbers = {id(column): str(number) for number, column in enumerate(columns, start=1)}
    return tuple(numbers[id(column)] if column.name.isdecimal() and not has_keys else column.name for column in found)


def may_be_text(column: Column, wanted: WantedTexts) -> bool:
    """True if nothing speaks against texts in a column: its name, or that it holds numbers, lists or classes."""
    name = folded(column.name)
    is_target = wanted.target is not None and not name.isdecimal() and name == folded(wanted.target)
    is_other = is_target or name in LABEL_NAMES | OTHER_NAMES
    is_list = column.lists and not (wanted.turns and column.is_dialogue)
    return not (is_other or column.is_note or is_list or column.all_numbers or is_of_classes(column, wanted))


def of_language(columns: Sequence[Column], language: str) -> list[Column]:
    """Return the columns whose name is a language, by code or by name."""
    base = base_language(language)
    return [
        column
        for column in columns
        if base_language(column.name.strip()) == base or language_called(column.name) == base
    ]


def called(columns: Sequence[Column], usual: Collection[str]) -> list[Column]:
    """Return the columns that have one of some usual names, such as "text" or "review"."""
    return [column for column in columns if folded(column.name) in usual]


def is_second(column: Column) -> bool:
    """True if the name of a column is a usual one of the second text of a pair, such as "context"."""
    return folded(column.name) in PAIR_NAMES


def doubt(wanted: WantedTexts, by_place: tuple[str, ...] | None, columns: Sequence[Column]) -> str:
    """Say why no columns are chosen."""
    if by_place:
        return f"column {', '.join(by_place)}, which the recipe reads, seems to hold labels"
    many = len([column for column in columns if column.is_text]) > len(wanted.fields)
    why = "several columns may hold the text" if many else "no column seems to hold the text"
    return f"it has no column {' or '.join(map(repr, wanted.fields))}, as the recipe names it, and {why}"
