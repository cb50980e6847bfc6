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
    """What is known of the texts that a command reads from a table."""

    fields: tuple[str, ...]  # names of the columns in the recipe: one for each text of a row
    named: tuple[str | None, ...] = ()  # the names that options give, as many; None where there is none
    labels: Collection[str] = ()  # classes of the model; a column of nothing else does not hold texts
    target: str | None = None  # the name of the recipe's column of labels or of expected texts
    language: str = "src"  # of the texts, as a code, or "src" if the recipe does not say
    usual: Collection[str] = TEXT_NAMES  # in lower case; one of them is taken if several columns may hold texts
    option: str = "--column"  # the option that names a column, for messages
    turns: bool = False  # True if a text may be a list of turns in JSON, as for a model of dialogues


@dataclass(frozen=True)
class ChosenColumns:
    """Columns of a table to read, by name or number, and whether they are a guess that the user should hear of."""

    fields: tuple[str, ...]
    guessed: bool = False


def choose_columns(path: Path, wanted: WantedTexts) -> ChosenColumns:
    """Choose the columns of a table that hold the texts that a command reads, by the rule of this module."""
    has_keys = ending_of(path) == ".jsonl"
    if has_keys:
        check_objects(path, "error")
    header = first_names(path)
    has_names = names_columns(wanted.fields, header)
    if any(wanted.named):
        pairs = zip(wanted.named, wanted.fields, strict=True)
        named = tuple(existing(name or field, header, path, wanted.option) for name, field in pairs)
        return ChosenColumns(by_name(named, header) if has_names else named)
    if has_names and all(find_name(field, header) is not None for field in wanted.fields):
        return ChosenColumns(wanted.fields)
    columns = columns_of(path, DataConfig())
    by_place = None if has_keys or has_header(path) else places(wanted, len(columns))
    if len(columns) == len(wanted.fields):
        return ChosenColumns(by_place or fields_of(columns, columns, has_keys=has_keys))
    guessed = guess(columns, wanted)
    texts = None if guessed is None else fields_of(guessed, columns, has_keys=has_keys)
    if by_place:
        # Columns of numbers or of classes of the model hold no texts. Nor do those of a few short values, as of labels,
        # unless there are no other columns of texts.
        sure = texts in (None, by_place)
        meant = [columns[int(place) - 1] for place in by_place]
        if not any(c.all_numbers or is_of_classes(c, wanted) or (c.is_label and not sure) for c in meant):
            return ChosenColumns(by_place)
    if texts is None:
        if by_place:
            doubt = f"column {', '.join(by_place)}, which the recipe reads, seems to hold labels"
        else:
            many = len([column for column in columns if column.is_text]) > len(wanted.fields)
            why = "several columns may hold the text" if many else "no column seems to hold the text"
            doubt = f"it has no column {' or '.join(map(repr, wanted.fields))}, as the recipe names it, and {why}"
        raise InputError(
            f"{path}: {doubt}; it has {', '.join(map(str, columns[:12]))}. Name the column of the text with "
            f"{wanted.option}"
        )
    return ChosenColumns(texts, guessed=True)


def first_names(path: Path) -> list[str]:
    """Return the cells of the first row of a table, or the keys of the first object, which may be names of columns."""
    if ending_of(path) != ".jsonl":
        return next((cells for _, cells in cells_of(path, "replace") if cells is not None), [])
    with open_bytes(path) as stream:
        line = next(decode_lines(stream, str(path), bad_utf8="replace"), None)
    return list(parse_object(line, f"{path}, line 1")) if line else []


def existing(name: str, header: Sequence[str], path: Path, option: str) -> str:
    """Return the name of a column as the table has it, or the number of a column."""
    if name.isdecimal():
        return name
    meant = find_name(name, header)
    if meant is None:
        raise InputError(
            f"{path}: no column is named {name!r}{hint_of_name(name, header)}; it has "
            f"{', '.join(map(repr, header[:20]))}. Name one of them with {option}, or a number from 1"
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


def is_of_classes(column: Column, wanted: WantedTexts) -> bool:
    """True if each value of a column is a class of the model, whatever its case."""
    classes = set(map(folded, wanted.labels))
    return bool(classes) and {folded(value) for value in column.values} <= classes


def guess(columns: Sequence[Column], wanted: WantedTexts) -> list[Column] | None:
    """Guess the columns of texts, as many as are wanted, as `heedful init` would; None if it is in doubt."""
    base = base_language(wanted.language)
    rest = [column for column in columns if may_be_text(column, wanted)]
    texts = [column for column in rest if column.is_text] or rest
    rounds = (
        [c for c in rest if base_language(c.name.strip()) == base or language_called(c.name) == base],
        texts,
        [column for column in rest if folded(column.name) in TEXT_NAMES | PAIR_NAMES],
        [column for column in texts if folded(column.name) in wanted.usual],
        [column for column in rest if folded(column.name) in wanted.usual],
    )
    # The first rule that leaves as many columns as are wanted.
    for candidates in rounds:
        if len(candidates) == len(wanted.fields):
            # a column with a usual name of the second text of a pair, such as "context", comes last
            return sorted(candidates, key=lambda column: folded(column.name) in PAIR_NAMES)
    return None


def fields_of(some: Sequence[Column], columns: Sequence[Column], *, has_keys: bool) -> tuple[str, ...]:
    """Return what names some of the columns: the name or, if it would be read as a place (not of JSON), the number."""
    numbers = {id(column): str(number) for number, column in enumerate(columns, start=1)}
    return tuple(numbers[id(column)] if column.name.isdecimal() and not has_keys else column.name for column in some)


def may_be_text(column: Column, wanted: WantedTexts) -> bool:
    """True if nothing speaks against texts in a column: its name, or that it holds numbers, lists or classes."""
    name = folded(column.name)
    is_target = wanted.target is not None and not name.isdecimal() and name == folded(wanted.target)
    is_other = is_target or name in LABEL_NAMES | OTHER_NAMES
    is_list = column.lists and not (wanted.turns and column.is_dialogue)
    return not (is_other or column.is_note or is_list or column.all_numbers or is_of_classes(column, wanted))
