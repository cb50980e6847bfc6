"""Texts, or pairs of texts, in the columns of a table: with labels or numbers for training, without for prediction."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import has_header, whole_number
from heedful.data.readers.corpus import TableRow, read_rows
from heedful.data.readers.files import decode_lines, ending_of, open_bytes
from heedful.data.readers.filters import DropReport
from heedful.data.readers.rows import MISSING, NAMED, READERS, cells_of, parse_object
from heedful.errors import InputError

LINE_ENDS = re.compile(r"\s*[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]\s*")  # would break a line of results
MOST_LABELS = 1000  # more of them hint at a column that holds ids or text
DOMINANT = 0.75  # the share of the largest class from which it is pointed out
MAX_SCORE = 1e15  # the squares of many of them are summed in float32


class Example(NamedTuple):
    """A labelled text, or pair of texts: its label, and the line of the file at which the example begins, from 1."""

    line: int
    text: str
    pair: str | None
    label: str


class ScoredText(NamedTuple):
    """A text, or pair of texts, with a number to predict, and the line of the file at which it begins, from 1."""

    line: int
    text: str
    pair: str | None
    score: float


def read_labelled(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Example]:
    """Yield the labelled examples of a corpus, or of its `part`, in file order; each label becomes one line.

    The text is in `source_field`, a second one in `pair_field` where that is set, the label in `target_field`. Where
    the classes are known, a label is written as its class, as in `class_of`. Rows with an empty label are left out, and
    `report` counts them.
    """
    report = DropReport() if report is None else report
    pair_field = [] if corpus.pair_field is None else [corpus.pair_field]
    fields = (corpus.source_field, *pair_field, corpus.target_field)
    rows = read_rows(corpus, data, fields, report, label=corpus.target_field)
    for line, (text, *pair, raw) in rows:
        if raw.strip():
            label = class_of(LINE_ENDS.sub(" ", raw.strip()), data.labels)
            yield Example(line, text, pair[0] if pair else None, label)
        else:
            report.drop("empty label", corpus.target or corpus.source, line)


def read_scored(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[ScoredText]:
    """Yield the examples of a corpus whose labels are numbers, in file order, for regression."""
    for line, text, pair, label in read_labelled(corpus, data, report):
        number = _number(label)
        if number is None:
            raise InputError(
                f"{_place(corpus, line)}: {label!r} is not a finite number, as regression needs; is "
                f"target_field = {corpus.target_field!r} the right one?"
            )
        if abs(number) > MAX_SCORE:
            raise InputError(
                f"{_place(corpus, line)}: {label} is too large for regression, whose loss is a square in float32; "
                f"give numbers up to {MAX_SCORE:.0e}, in a larger unit"
            )
        yield ScoredText(line, text, pair, number)


def labels_of(data: DataConfig) -> tuple[str, ...]:
    """Return the classes of a recipe: `data.labels`, or else all labels of the training corpora, sorted.

    Where all are numbers, they are sorted as numbers: 2 comes before 10.
    """
    return classes(data, lambda corpus: ((x.label, _place(corpus, x.line)) for x in read_labelled(corpus, data)))


def classes(data: DataConfig, labels_of_corpus: Callable[[CorpusConfig], Iterable[tuple[str, str]]]) -> tuple[str, ...]:
    """Return the classes of a recipe: `data.labels`, or else all labels of the training corpora, in order.

    `labels_of_corpus` gives the label of each example of a corpus, and its place for messages.
    """
    distinct, labels = set[str](), set[str]()
    for corpus in () if data.labels else data.train:
        of_corpus = set[str]()
        for label, place in labels_of_corpus(corpus):
            of_corpus.add(label)
            distinct.add(label)
            if len(distinct) > MOST_LABELS:
                raise InputError(
                    f"{place}: more than {MOST_LABELS:,} different labels, the last one {label[:40]!r}; is "
                    f"target_field = {corpus.target_field!r} the right one?"
                )
        labels |= whole_labels(of_corpus)
    names = data.labels or in_order(labels)
    if len(names) < 2:
        sources = ", ".join(corpus.source for corpus in data.train)
        raise InputError(f"{sources}: classification needs two classes or more, not {list(names)}; check target_field")
    return names


def whole_labels(labels: Iterable[str]) -> set[str]:
    """Write the labels of a column without fractions if all are whole numbers: 1 and 2 for 1.0 and 2.0.

    Tables write them with a fraction where a label is missing. Labels stay as they are if two are the same number.
    """
    distinct = set(labels)
    numbers = {number for label in distinct if (number := whole_number(label)) is not None}
    return numbers if len(numbers) == len(distinct) else distinct


def class_of(label: str, known: Collection[str]) -> str:
    """Return the class of a label: the label or, if it is not known, the class that is the same whole number."""
    number = None if label in known else whole_number(label)
    return label if number is None else next((one for one in known if whole_number(one) == number), label)


def dominance_line(counts: Mapping[str, float]) -> str | None:
    """Say with the remedy that most examples are of one class, given the counts of classes; None where it is not so."""
    if len(counts) < 2 or not (total := sum(counts.values())):
        return None
    label = max(counts, key=lambda label: counts[label])
    share = counts[label] / total
    if share < DOMINANT:
        return None
    return (
        f"{share:.0%} of the examples are of the class {label!r}, so a model that always says it has an accuracy of "
        f'{share:.0%}: look at macro_f1 and select by it, train.best = "macro_f1"; where other classes are not found, '
        'set train.class_weights = "balanced"'
    )


def in_order(labels: Collection[str]) -> tuple[str, ...]:
    """Sort the labels of classes: as numbers where all are numbers, so that 2 comes before 10, else as texts."""
    numbers = {label: _number(label) for label in labels}
    if None in numbers.values():
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (numbers[label], label)))


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _place(corpus: CorpusConfig, line: int) -> str:
    return f"{corpus.target or corpus.source}, line {line}"


def is_table(path: Path) -> bool:
    """True if a file has columns or keys by its name, which ends in .tsv, .csv or .jsonl, or then in .gz."""
    return ending_of(path) in READERS


def read_texts(
    path: Path, fields: Sequence[str], report: DropReport | None = None, *, turns: bool = False
) -> Iterator[TableRow]:
    """Yield the wanted fields of each row of a table in file order; a header is no row, whatever columns it names."""
    report = DropReport() if report is None else report
    names_columns = ending_of(path) in NAMED and has_header(path)
    header = next(cells_of(path, "error"))[0] if names_columns else 0
    for row in read_rows(CorpusConfig(source=str(path)), DataConfig(), fields, report, turns=turns):
        if row.line == header:
            report.drop("header", str(path), header)
        else:
            yield row


class WholeRow(NamedTuple):
    """A row of input; a cell of a .jsonl file is the value of its key, of any kind, or `MISSING`."""

    line: int  # where it begins, from 1
    texts: tuple[str, ...]  # that are wanted
    cells: tuple[object, ...]  # all, in their order


def names_of_cells(path: Path, first: int | None) -> tuple[str, ...]:
    """Return the names of all columns, numbers from 1 where there is no header, or the keys of all objects."""
    if ending_of(path) == ".jsonl":
        return tuple(dict.fromkeys(key for _, values in objects_of(path) for key in values))
    line, cells = next(cells_of(path, "error"), (0, None))
    cells = cells or []
    return tuple(str(number) for number, _ in enumerate(cells, start=1)) if line == first else tuple(cells)


def read_whole_rows(
    path: Path, fields: Sequence[str], columns: Sequence[str], *, turns: bool = False
) -> Iterator[WholeRow]:
    """Yield the rows that `read_texts` yields for some fields, with all their cells."""
    # Both readers go through the file in step, so that no row is kept.
    every = every_row(path, columns)
    for row in read_texts(path, fields, turns=turns):
        yield WholeRow(row.line, row.texts, next(cells for line, cells in every if line == row.line))


def every_row(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield the line and the cells of each row of a table; cells that a row lacks at its end are empty."""
    if ending_of(path) == ".jsonl":
        for line, values in objects_of(path):
            yield line, tuple(values.get(key, MISSING) for key in columns)
        return
    for line, cells in cells_of(path, "error"):
        yield line, tuple(islice([*(cells or ()), *[""] * len(columns)], len(columns)))


def objects_of(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8="error"), start=1):
            yield number, parse_object(line or "", f"{path}, line {number}")
