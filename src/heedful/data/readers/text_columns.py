"""Choice of the table columns with the texts that a model reads: one rule for all commands.

1. The columns given by options.
2. Otherwise the columns given by the recipe, which are numbers in a table without a header.
3. Otherwise the columns in which `heedful init` recognises text; if in doubt, an error is raised.

A recipe may give columns by number, or by default the first ones. If these contain labels and others contain text, as
in a table whose label comes first, the columns with text are read.
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
from heedful.data.readers.files import ending_of, read_lines
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
class TextRequest:
    """Request for the text columns of a table: names from the recipe and from options, and the model's classes."""

    fields: tuple[str, ...]  # names of the columns in the recipe: one for each text of a row
    named: tuple[str | None, ...] = ()  # the name given by an option for each field, or None
    labels: Collection[str] = ()  # classes of the model; a column that contains only classes is not text
    target: str | None = None  # the name of the recipe's column of labels or expected texts
    language: str = "src"  # code of the language of the texts, or "src" if the recipe does not give it
    usual: Collection[str] = TEXT_NAMES  # names, in lower case, that are preferred among columns that may contain text
    option: str = "--column"  # the option that sets a column, for messages
    turns: bool = False  # True if a text may be a list of turns in JSON, as for a dialogue model


@dataclass(frozen=True)
class ColumnChoice:
    """Table columns to read, by name or number. `guessed` is True if they are a guess that needs a warning."""

    fields: tuple[str, ...]
    guessed: bool = False


def choose_columns(path: Path, request: TextRequest) -> ColumnChoice:
    """Choose the table columns with the texts that a command reads, by the rule of this module."""
    has_keys = ending_of(path) == ".jsonl"
    if has_keys:
        check_objects(path, "error")
    header = header_candidates(path)
    has_names = names_columns(request.fields, header)
    if any(request.named):
        pairs = zip(request.named, request.fields, strict=True)
        named = tuple(
            _column_name(name or field, header, path, "--pair-field" if index else request.option)
            for index, (name, field) in enumerate(pairs)
        )
        if has_names:  # numbers become names, because the first row is a header
            names = {
                str(number): name
                for number, name in enumerate(header, start=1)
                if header.count(name) == 1 and not name.strip().isdecimal()
            }
            named = tuple(names.get(field) or field for field in named)
        return ColumnChoice(named)
    if has_names and all(find_name(field, header) is not None for field in request.fields):
        return ColumnChoice(request.fields)
    columns = columns_of(path, DataConfig())
    by_number = None if has_keys or has_header(path) else _numbers(request.fields, len(columns))
    # With as many columns as texts, all columns are read, whatever their names.
    if len(columns) == len(request.fields):
        return ColumnChoice(by_number or _fields_of(columns, columns, has_keys=has_keys))
    guessed = _guess(columns, request)
    texts = None if guessed is None else _fields_of(guessed, columns, has_keys=has_keys)
    if by_number:
        # Columns of numbers or of the model's classes do not contain text. Columns of a few short values look like
        # labels, which counts only if other columns contain text.
        is_sure = texts in (None, by_number)
        chosen = [columns[int(number) - 1] for number in by_number]
        if not any(c.all_numbers or _has_only_classes(c, request) or (c.is_label and not is_sure) for c in chosen):
            return ColumnChoice(by_number)
    if texts is None:
        if by_number:
            doubt = f"column {', '.join(by_number)}, which the recipe reads, seems to contain labels"
        else:
            many = len([column for column in columns if column.is_text]) > len(request.fields)
            why = "several columns may contain the text" if many else "no column seems to contain the text"
            doubt = f"it has no column {' or '.join(map(repr, request.fields))}, which the recipe names, and {why}"
        are = "its columns are" if has_keys or has_header(path) else "without a header, its columns are numbered:"
        raise InputError(
            f"{path}: {doubt}; {are} {', '.join(map(str, columns[:12]))}. Name the column of the text with "
            f"{request.option}"
        )
    return ColumnChoice(texts, guessed=True)


def header_candidates(path: Path) -> list[str]:
    """Return what may be column names: the cells of a table's first row, or the keys of the first JSON object."""
    if ending_of(path) != ".jsonl":
        return next((cells for _, cells in cells_of(path, "replace") if cells is not None), [])
    line = next(read_lines(path, bad_utf8="replace"), None)
    return list(parse_object(line, f"{path}, line 1")) if line else []


def _column_name(name: str, header: Sequence[str], path: Path, option: str) -> str:
    """Return the name of a column as written in the table. The number of a table column is returned unchanged."""
    has_keys = ending_of(path) == ".jsonl"
    if name.isdecimal() and not has_keys and 0 < int(name) <= len(header):
        return name
    column = find_name(name, header)
    if column is None:
        raise InputError(
            f"{path}: no column is named {name!r}{hint_of_name(name, header)}; it has "
            f"{', '.join(map(repr, header[:20]))}. Give one of these names with {option}"
            f"{'' if has_keys else f', or a column number from 1 to {len(header)}'}"
        )
    return column


def _numbers(fields: tuple[str, ...], width: int) -> tuple[str, ...] | None:
    """Return the numbers of the columns `fields` in a table without a header, or None if it has no such columns."""
    if all(field.isdecimal() for field in fields):
        return fields if all(0 < int(field) <= width for field in fields) else None
    if fields in USUAL_FIELDS and len(fields) <= width:
        return tuple(str(number) for number, _ in enumerate(fields, start=1))
    return None


def _has_only_classes(column: Column, request: TextRequest) -> bool:
    """Return True if each value of a column is a class of the model, regardless of case."""
    classes = set(map(folded, request.labels))
    return bool(classes) and {folded(value) for value in column.values} <= classes


def _guess(columns: Sequence[Column], request: TextRequest) -> list[Column] | None:
    """Guess the text columns, one for each field, as `heedful init` does; return None if in doubt."""

    def may_be_text(column: Column) -> bool:
        name = folded(column.name)
        is_target = request.target is not None and not name.isdecimal() and name == folded(request.target)
        is_other = is_target or name in LABEL_NAMES | OTHER_NAMES
        is_list = column.lists and not (request.turns and column.is_dialogue)
        return not (is_other or column.is_note or is_list or column.all_numbers or _has_only_classes(column, request))

    base = base_language(request.language)
    rest = list(filter(may_be_text, columns))
    texts = [column for column in rest if column.is_text] or rest
    rounds = (
        [c for c in rest if base_language(c.name.strip()) == base or language_called(c.name) == base],
        texts,
        [column for column in rest if folded(column.name) in TEXT_NAMES | PAIR_NAMES],
        [column for column in texts if folded(column.name) in request.usual],
        [column for column in rest if folded(column.name) in request.usual],
    )
    # The first selection that has exactly one column for each field decides.
    for candidates in rounds:
        if len(candidates) == len(request.fields):
            # The usual names of second texts, such as "context", come last.
            return sorted(candidates, key=lambda column: folded(column.name) in PAIR_NAMES)
    return None


def _fields_of(some: Sequence[Column], columns: Sequence[Column], *, has_keys: bool) -> tuple[str, ...]:
    """Return the names of `some` of the columns of a table or of the keys of JSON objects.

    In a table, a name such as "2" would be read as the second column, so such a column is given by its number.
    """
    numbers = {id(column): str(number) for number, column in enumerate(columns, start=1)}
    return tuple(numbers[id(column)] if column.name.isdecimal() and not has_keys else column.name for column in some)
