"""Texts or text pairs in the columns of a table: with labels or numbers for training, without them for prediction."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import MAX_LABELS, has_header, is_number, whole_number
from heedful.data.readers.corpus import TableRow, read_rows
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import ending_of
from heedful.data.readers.rows import MISSING, READERS, USUAL_SEPARATORS, cells_of, objects_of
from heedful.errors import InputError

LINE_ENDS = re.compile(r"\s*[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]\s*")  # these would split a line of results
DOMINANT_SHARE = 0.75  # minimum share of the largest class for a warning
MAX_SCORE = 1e15  # the squares of many labels are summed in float32


class Example(NamedTuple):
    """A text or text pair with its label, and the line of the file where the example begins, counted from 1."""

    line: int
    text: str
    pair: str | None
    label: str


class ScoredText(NamedTuple):
    """A text or text pair with the number to predict, and the line of the file where the text begins, from 1."""

    line: int
    text: str
    pair: str | None
    score: float


def read_labelled(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Example]:
    """Yield the labelled examples of a corpus, or of its `part`, in file order.

    The text is in `source_field`, a second text in `pair_field` if that is set, and the label in `target_field`. Line
    breaks and tabs in a label become spaces. If the classes are known, a label is converted to its class, as in
    `class_of`. Rows with an empty label are left out, and `report` counts them.
    """
    report = report or DropReport()
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
        if not is_number(label):
            raise InputError(
                f"{_location(corpus, line)}: {label!r} is not a finite number, which regression needs; is "
                f"target_field = {corpus.target_field!r} the right one?"
            )
        number = float(label)
        if abs(number) > MAX_SCORE:
            raise InputError(
                f"{_location(corpus, line)}: {label} is too large for regression, whose loss is squared in float32; "
                f"give numbers up to {MAX_SCORE:.0e}, in a larger unit"
            )
        yield ScoredText(line, text, pair, number)


def labels_of(data: DataConfig) -> tuple[str, ...]:
    """Return the classes of a recipe: `data.labels`, or all labels of the training corpora, sorted.

    If all are numbers, they are sorted as numbers: 2 comes before 10.
    """
    return classes(data, lambda corpus: ((x.label, _location(corpus, x.line)) for x in read_labelled(corpus, data)))


def classes(data: DataConfig, read_labels: Callable[[CorpusConfig], Iterable[tuple[str, str]]]) -> tuple[str, ...]:
    """Return the classes of a recipe: `data.labels`, or all labels of the training corpora, in order.

    `read_labels` yields the label of each example of a corpus, and the location of the example for messages.
    """
    distinct, labels = set[str](), set[str]()
    for corpus in () if data.labels else data.train:
        corpus_labels = set[str]()
        for label, location in read_labels(corpus):
            corpus_labels.add(label)
            distinct.add(label)
            if len(distinct) > MAX_LABELS:
                raise InputError(
                    f"{location}: more than {MAX_LABELS:,} distinct labels, the last one {label[:40]!r}; is "
                    f"target_field = {corpus.target_field!r} the right one?"
                )
        # Labels are compared within each corpus, because one file may write 1 and another 1.0 for the same class.
        labels |= whole_labels(corpus_labels)
    names = data.labels or in_order(labels)
    if len(names) < 2:
        sources = ", ".join(corpus.source for corpus in data.train)
        raise InputError(f"{sources}: classification needs at least two classes, not {list(names)}; check target_field")
    return names


def whole_labels(labels: Iterable[str]) -> set[str]:
    """Return the labels of a column without ".0" if all are whole numbers: 1 and 2 instead of 1.0 and 2.0.

    Programs such as pandas add ".0" if a label is missing. If two labels are the same number, all stay unchanged.
    """
    distinct = set(labels)
    numbers = {number for label in distinct if (number := whole_number(label)) is not None}
    return numbers if len(numbers) == len(distinct) else distinct


def class_of(label: str, classes: Collection[str]) -> str:
    """Return the class that `label` names, either exactly or as the same whole number; else `label` itself."""
    number = None if label in classes else whole_number(label)
    return label if number is None else next((name for name in classes if whole_number(name) == number), label)


def dominance_line(counts: Mapping[str, float]) -> str | None:
    """Return a warning with a remedy if one class dominates in the class `counts`, else None."""
    if len(counts) < 2 or not (total := sum(counts.values())):
        return None
    label = max(counts, key=lambda label: counts[label])
    share = counts[label] / total
    if share < DOMINANT_SHARE:
        return None
    return (
        f"{share:.0%} of the examples belong to class {label!r}, so a model that always predicts it has an accuracy "
        f'of {share:.0%}: use macro_f1 and select checkpoints by it (train.best = "macro_f1"); if the model never '
        'predicts the other classes, set train.class_weights = "balanced"'
    )


def in_order(labels: Collection[str]) -> tuple[str, ...]:
    """Sort class labels: as numbers if all are numbers, so that 2 comes before 10, otherwise as strings."""
    if all(map(is_number, labels)):
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    return tuple(sorted(labels))


def _location(corpus: CorpusConfig, line: int) -> str:
    return f"{corpus.target or corpus.source}, line {line}"


def is_table(path: Path) -> bool:
    """Return True if a file name ends in .tsv, .csv or .jsonl, which .gz, .bz2 or .xz may follow."""
    return ending_of(path) in READERS


def read_texts(
    path: Path, fields: Sequence[str], report: DropReport | None = None, *, turns: bool = False
) -> Iterator[TableRow]:
    """Yield some fields of each row of a table in file order. A header is not a row, whatever columns it names."""
    report = report or DropReport()
    # `read_rows` looks for a header only in the chosen columns; here all columns help to recognise it.
    names_columns = ending_of(path) in USUAL_SEPARATORS and has_header(path)
    header = next(cells_of(path, "error"))[0] if names_columns else 0
    for row in read_rows(CorpusConfig(source=str(path)), DataConfig(), fields, report, turns=turns):
        if row.line == header:
            report.drop("header", str(path), header)
        else:
            yield row


class WholeRow(NamedTuple):
    """A row of input. A cell of a .jsonl file is the value of its key, of any type, or `MISSING`."""

    line: int  # the line where it begins, counted from 1
    texts: tuple[str, ...]  # the fields to read
    cells: tuple[object, ...]  # all cells in order


def names_of_cells(path: Path, first: int | None) -> tuple[str, ...]:
    """Return the names of all columns of a table, or the keys of all objects of a .jsonl file.

    `first` is the line number of the first row after any header. If the table begins there, it has no header, and its
    columns are named by their numbers, from 1.
    """
    if ending_of(path) == ".jsonl":
        return tuple(dict.fromkeys(key for _, values in objects_of(path, "error") for key in values or ()))
    line, cells = next(cells_of(path, "error"), (0, None))
    cells = cells or []
    return tuple(str(number) for number, _ in enumerate(cells, start=1)) if line == first else tuple(cells)


def read_whole_rows(
    path: Path, fields: Sequence[str], columns: Sequence[str], *, turns: bool = False
) -> Iterator[WholeRow]:
    """Yield the rows of `read_texts` with all their cells."""
    # Both readers go through the file in step, so that no rows are stored.
    every = every_row(path, columns)
    for row in read_texts(path, fields, turns=turns):
        yield WholeRow(row.line, row.texts, next(cells for line, cells in every if line == row.line))


def every_row(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield the line number and the cells of each row of a table, including any header.

    Cells that are missing at the end of a row are empty; keys that an object lacks are `MISSING`.
    """
    if ending_of(path) == ".jsonl":
        for line, values in objects_of(path, "error"):
            yield line, tuple((values or {}).get(key, MISSING) for key in columns)
        return
    for line, cells in cells_of(path, "error"):
        yield line, tuple(islice([*(cells or ()), *[""] * len(columns)], len(columns)))


@dataclass(frozen=True)
class Standardisation:
    """Standardisation of regression labels: a model learns (label - mean) / scale, which is the same in every unit.

    Attributes:
        mean: The mean of the training labels; 0 if the labels are learned unchanged.
        scale: The standard deviation of the training labels; 1 if the labels are learned unchanged.
    """

    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, data: DataConfig) -> "Standardisation":
        if data.label_mean is None or data.label_scale is None:
            return cls()
        return cls(data.label_mean, data.label_scale)

    @classmethod
    def of_labels(cls, labels: Sequence[float]) -> "Standardisation":
        """Compute the mean and standard deviation of the labels as stored, in float32; their order does not matter."""
        import numpy as np  # takes a tenth of the start-up time of commands without torch, which do not need it

        # `fsum` is exact up to the last rounding, so that the order of the corpora does not change the result.
        stored = np.asarray(labels, np.float32).tolist()
        mean = float(np.float32(math.fsum(stored) / len(stored)))  # float32, as in `standardised`
        deviation = math.sqrt(math.fsum((label - mean) ** 2 for label in stored) / len(stored))
        return cls(mean, deviation or 1.0)  # if all labels are equal, the deviation is 0

    def standardised(self, labels: Any) -> Any:
        """Standardise a number, an array or a tensor."""
        return (labels - self.mean) / self.scale

    def restored(self, outputs: Any) -> Any:
        """Convert standardised numbers to the unit of the labels."""
        return outputs * self.scale + self.mean
