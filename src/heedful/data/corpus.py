"""Parallel text: two files side by side, or one table (.tsv) or list of objects (.jsonl) that holds both sides."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.files import BadUtf8, decode_lines, decode_utf8, open_bytes, read_lines
from heedful.data.filters import DropReport
from heedful.errors import InputError


class Pair(NamedTuple):
    """One sentence in both languages, and the line of the file (of the source file, where there are two), from 1."""

    line: int
    source: str
    target: str


class Row(NamedTuple):
    """A pair as it stands in the file: a side is None where bad UTF-8 is to be skipped."""

    line: int
    source: str | None
    target: str | None


def corpus_files(corpus: CorpusConfig, data: DataConfig) -> tuple[Path, ...]:
    """Return the one or two files of a corpus; relative names start at `data.root`.

    Raises:
        InputError: One of them is a pipe or a device, which cannot be read twice.
    """
    names = [corpus.source] if corpus.target is None else [corpus.source, corpus.target]
    paths = tuple(Path(data.root) / name for name in names)
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path}: not a plain file; a corpus is read more than once, so save it to a file first")
    return paths


def read_pairs(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[Pair]:
    """Yield the pairs of a corpus in file order.

    Where bad UTF-8 is skipped, both sides of the pair are, and `report` counts it.

    Raises:
        InputError: A file cannot be read, two files differ in length, or a row lacks one side.
    """
    report = DropReport() if report is None else report
    for line, source, target in _rows(corpus, data):
        if source is None or target is None:
            report.drop("bad UTF-8", corpus.source, line)
        else:
            yield Pair(line, source, target)


def corpus_kind(corpus: CorpusConfig) -> Literal["text", "tsv", "jsonl"]:
    """Return how a corpus is stored: as two text files, or as one file whose name tells.

    Raises:
        InputError: The name of the only file does not tell.
    """
    if corpus.target is not None:
        return "text"
    match Path(corpus.source.removesuffix(".gz")).suffix:
        case ".tsv":
            return "tsv"
        case ".jsonl":
            return "jsonl"
        case _:
            raise InputError(
                f"{corpus.source}: one file holds both languages if its name ends in .tsv or .jsonl (or .tsv.gz, "
                ".jsonl.gz); if this is one language, name the file of the other as target"
            )


def _rows(corpus: CorpusConfig, data: DataConfig) -> Iterator[Row]:
    paths = corpus_files(corpus, data)
    match corpus_kind(corpus):
        case "text":
            return _rows_of_two_files(paths[0], paths[1], data.bad_utf8)
        case "tsv":
            return _rows_of_table(paths[0], corpus, data.bad_utf8)
        case "jsonl":
            return _rows_of_objects(paths[0], corpus, data.bad_utf8)


def _rows_of_two_files(source: Path, target: Path, bad_utf8: BadUtf8) -> Iterator[Row]:
    _check_same_length(source, target)
    with open_bytes(source) as source_stream, open_bytes(target) as target_stream:
        sources = decode_lines(source_stream, str(source), bad_utf8=bad_utf8)
        targets = decode_lines(target_stream, str(target), bad_utf8=bad_utf8)
        for line, (source_text, target_text) in enumerate(zip(sources, targets, strict=True), start=1):
            yield Row(line, source_text, target_text)


def _check_same_length(source: Path, target: Path) -> None:
    counts = [sum(1 for _ in read_lines(path, bad_utf8="replace")) for path in (source, target)]
    if counts[0] != counts[1]:
        raise InputError(
            f"{source} has {counts[0]:,} lines and {target} has {counts[1]:,}; line n of one must be the "
            f"translation of line n of the other. {_drift_hint(source, target, min(counts))}"
        )


def _drift_hint(source: Path, target: Path, count: int) -> str:
    source_lengths, target_lengths = (
        np.fromiter(map(len, islice(read_lines(path, bad_utf8="replace"), count)), np.float64, count)
        for path in (source, target)
    )
    line = find_drift(source_lengths, target_lengths)
    if line is None:
        return f"The lengths of the first {count:,} lines go together: look at the end of the longer file."
    return f"From about line {line:,} on, lengths do not go together: look for a lost or an added line there."


def find_drift(source_lengths: np.ndarray, target_lengths: np.ndarray) -> int | None:
    """Return the first line, from 1, of the part where the two sides are no translations of each other, or None.

    Translations have similar lengths, strangers do not: |log length ratio - its median| jumps where a line is missing
    on one side. The line is the most likely place of one jump in the mean of an exponentially distributed quantity.

    Args:
        source_lengths: Characters of each source line, shape (n,).
        target_lengths: Characters of each target line, shape (n,).
    """
    count = len(source_lengths)
    if count < 2:
        return None
    log_ratio = np.log((source_lengths + 1) / (target_lengths + 1))
    distance = np.abs(log_ratio - np.median(log_ratio)) + 0.05  # some equal lines do not make a part certain
    before = np.arange(1, count)
    sums = np.cumsum(distance)
    mean_before = sums[:-1] / before
    mean_after = (sums[-1] - sums[:-1]) / (count - before)
    gain = count * np.log(distance.mean()) - before * np.log(mean_before) - (count - before) * np.log(mean_after)
    gain[mean_after < 1.5 * mean_before] = 0.0
    best = int(np.argmax(gain))
    return best + 2 if gain[best] > 4.0 else None


def _rows_of_table(path: Path, corpus: CorpusConfig, bad_utf8: BadUtf8) -> Iterator[Row]:
    with open_bytes(path) as stream:
        columns: tuple[int, int] | None = None
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=bad_utf8), start=1):
            if line is None:
                yield Row(number, None, None)
                continue
            cells = line.split("\t")
            if columns is None:
                columns, is_header = _columns(cells, corpus, path)
                if is_header:
                    continue
            if max(columns) >= len(cells):
                raise InputError(
                    f"{path}, line {number}: {len(cells)} column(s), but column {max(columns) + 1} is wanted; "
                    f"columns are separated by tabs"
                )
            yield Row(number, cells[columns[0]], cells[columns[1]])


def _columns(first_row: list[str], corpus: CorpusConfig, path: Path) -> tuple[tuple[int, int], bool]:
    """Return the columns of source and target, from 0, and whether the first row is a header."""
    fields = (corpus.source_field, corpus.target_field)
    is_header = any(field in first_row for field in fields)
    if not is_header and fields == (CorpusConfig.source_field, CorpusConfig.target_field):
        return (0, 1), False
    return (_column(fields[0], first_row, path), _column(fields[1], first_row, path)), is_header


def _column(field: str, first_row: list[str], path: Path) -> int:
    if field in first_row:
        return first_row.index(field)
    if field.isdecimal() and int(field) > 0:
        return int(field) - 1
    raise InputError(
        f"{path}: no column is named {field!r}; the first line has {', '.join(map(repr, first_row[:20]))}. Set "
        f"source_field and target_field to names in it, or to column numbers from 1"
    )


def _rows_of_objects(path: Path, corpus: CorpusConfig, bad_utf8: BadUtf8) -> Iterator[Row]:
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=bad_utf8), start=1):
            if line is None:
                yield Row(number, None, None)
                continue
            values = parse_object(line, f"{path}, line {number}")
            source, target = (
                text_of(values, key, f"{path}, line {number}") for key in (corpus.source_field, corpus.target_field)
            )
            yield Row(
                number,
                decode_utf8(source, str(path), number, bad_utf8),
                decode_utf8(target, str(path), number, bad_utf8),
            )


def parse_object(line: str, place: str) -> dict[str, object]:
    """Return the JSON object that a line holds.

    Raises:
        InputError: It holds something else; the message begins with `place`.
    """
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); each line must be one object") from error
    if not isinstance(values, dict):
        raise InputError(f"{place}: a JSON {type(values).__name__}, not an object; each line must be one object")
    return values


def text_of(values: dict[str, object], key: str, place: str) -> bytes:
    """Return a text value as bytes, to be decoded: an escaped lone surrogate is text to JSON but not to UTF-8.

    Raises:
        InputError: There is no such key, or its value is not text; the message begins with `place`.
    """
    if key not in values:
        keys = ", ".join(map(repr, list(values)[:20])) or "none"
        raise InputError(f"{place}: no key {key!r}; it has {keys}. Set source_field (and target_field) to its keys")
    value = values[key]
    if not isinstance(value, str):
        raise InputError(f"{place}: the value of {key!r} is not text but {type(value).__name__}; put it in quotes")
    return value.encode("utf-8", "surrogatepass")
