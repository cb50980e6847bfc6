"""Readers of corpora: two parallel text files, or one table (.tsv, .csv) or .jsonl file with both sides."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.chat_messages import TURN_SEPARATOR, one_turn, turns_of
from heedful.data.readers.columns import LABEL_NAMES, OTHER_NAMES, TEXT_NAMES, is_header
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import (
    WHOLE,
    BadUtf8,
    NoItems,
    corpus_files,
    count_lines,
    decode_utf8,
    ending_of,
    numbered_lines,
    read_lines,
)
from heedful.data.readers.rows import (
    READERS,
    SET_COLUMNS,
    USUAL_FIELDS,
    Fields,
    RawRow,
    cells_of,
    objects_of,
    rows_of_table,
)
from heedful.errors import InputError
from heedful.wording import counted, either

MIN_LINES, MIN_CORRELATION = 20, 0.5  # of the lengths of two files' lines, for a hint; translations have about 0.9

if TYPE_CHECKING:
    import numpy as np

TABLES = {**READERS, ".txt": rows_of_table}  # a text file with named columns is a tab-separated table


class SentencePair(NamedTuple):
    """A source sentence and its translation, with their line number in the (source) file, counted from 1."""

    line: int
    source: str
    target: str


# Reads the sentence pairs of a corpus in file order, and counts unusable pairs in a `DropReport`.
ReadPairs = Callable[..., Iterator[SentencePair]]


class TableRow(NamedTuple):
    """Some fields of a row of a corpus, and the line of the (source) file where the row begins, counted from 1."""

    line: int
    texts: tuple[str, ...]


def read_pairs(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[SentencePair]:
    """Yield the sentence pairs of a parallel corpus, or of its `part`, in file order.

    If a line with bad UTF-8 is skipped, so is the other side of its pair, and `report` counts the pair.
    """
    if corpus.target is None and ending_of(corpus.source) not in READERS:
        raise InputError(
            f"{corpus.source}: there is no target, and only a .tsv, .csv or .jsonl file (which may end in .gz, .bz2 or "
            ".xz) can contain both languages; if this is one language, give the file of the other as target"
        )
    for line, (source, target) in read_rows(corpus, data, (corpus.source_field, corpus.target_field), report):
        yield SentencePair(line, source, target)


def read_rows(
    corpus: CorpusConfig,
    data: DataConfig,
    fields: Sequence[str],
    report: DropReport | None = None,
    *,
    label: str | None = None,
    turns: bool = False,
) -> Iterator[TableRow]:
    """Yield some fields of each row of a corpus in file order.

    If `corpus.part` is (a, b), only rows int(a * n) to int(b * n) - 1 of the n rows are read.

    A corpus of two files has two fields, whatever their names: a line of the source and a line of the target. The
    header of a table is not a row, whether the fields name its columns or `heedful.data.readers.columns` recognises it.

    Args:
        corpus: The files.
        data: The settings: the folder that relative names refer to, and what to do with bad UTF-8.
        fields: Names of columns or keys. In a table, column numbers, counted from 1, are possible too.
        report: Counts the rows with bad UTF-8 that are skipped, and a header that was recognised.
        label: The field whose JSON value need not be a string: a number, true or false is yielded as JSON text, and
            null as an empty text.
        turns: True if a text may be a list of dialogue turns in JSON; they are joined with tabs.
    """
    report = report or DropReport()
    selection = Fields(fields, label, turns)
    line_of_header = _line_of_header(corpus, data, selection)
    header = 1 if line_of_header else 0
    begin, end = 0, None
    # A part is a share of the rows without the header, so they must be counted first.
    if corpus.part != WHOLE:
        begin, end = part_of(corpus, sum(1 for _ in _rows(corpus, data, selection)) - header, "rows")
        end += header
    # If a file is read in several parts, only the first part counts the header.
    if header and begin == 0:
        report.drop("header", corpus.source, line_of_header)
    for line, texts in islice(_rows(corpus, data, selection), begin + header, end):
        decoded = tuple(text for text in texts if text is not None)
        if len(decoded) < len(texts):
            report.drop("bad UTF-8", corpus.source, line)
        else:
            yield TableRow(line, decoded)


def part_of(corpus: CorpusConfig, count: int, unit: str) -> tuple[int, int]:
    """Return the range of `corpus.part` in `count` items: the indices of the first item, and of the one after the last.

    Adjacent parts, such as (0, 0.9) and (0.9, 1), share no items and leave none out. `unit` is the items' name in
    messages. Raises NoItems if `count` is 0.
    """
    begin, end = corpus.part
    if not 0 <= begin < end <= 1:
        raise InputError(f"{corpus.source}: part is ({begin}, {end}); give two shares from 0 to 1, the smaller first")
    first, stop = int(count * begin), int(count * end)
    if first == stop:
        none = f"{corpus.source}: part ({begin}, {end}) contains none of its {count:,} {unit}"
        raise (InputError if count else NoItems)(f"{none}; use a larger part, or merge small files")
    return first, stop


def _line_of_header(corpus: CorpusConfig, data: DataConfig, fields: Fields) -> int:
    """Return the line number of a header whose names are not those of `fields`, or 0 if a table has none."""
    if corpus.target is not None or ending_of(corpus.source) == ".jsonl":
        return 0
    rows = _rows(corpus, data, fields)
    first = next(rows, None)
    if first is None or None in first.texts:
        return 0
    # If the first row is on a later line, the reader recognised the header itself, by the names of the fields.
    line, cells = next(cells_of(corpus_files(corpus, data)[0], data.bad_utf8))
    if first.line != line:
        return 0
    names = [text or "" for text in first.texts]
    if not is_header(names, (row.texts for row in rows)):
        return 0
    # If text and label were swapped, training would still run without an error.
    if fields.label and names[0].lower() in LABEL_NAMES and names[-1].lower() in TEXT_NAMES:
        raise InputError(
            f"{corpus.source}: its header suggests that {names[0]!r} is read as the text and {names[-1]!r} as "
            f'the label; set source_field = "{names[-1]}" and target_field = "{names[0]}"'
        )
    has_more = len(cells or ()) > len(names)
    if has_more and tuple(fields.names) in USUAL_FIELDS and names[0].lower() in ("", *OTHER_NAMES):
        raise InputError(
            f"{corpus.source}: its header suggests that {names[0]!r} is read as the text; the first line has "
            f"{', '.join(map(repr, cells or ()))}. {SET_COLUMNS} to these "
            "names, or to column numbers from 1"
        )
    return line


def _rows(corpus: CorpusConfig, data: DataConfig, fields: Fields) -> Iterator[RawRow]:
    paths = corpus_files(corpus, data)
    if len(paths) == 2:
        return _rows_of_two_files(paths[0], paths[1], fields, data.bad_utf8)
    suffix = ending_of(corpus.source)
    if suffix not in TABLES:
        raise InputError(
            f"{corpus.source}: only a file whose name ends in {either(TABLES)} (.gz, .bz2 or .xz may follow) can have "
            f"the columns {' and '.join(map(repr, fields.names))}; if this file has only the texts, give the file with "
            "the labels or targets as target (in `heedful evaluate`, with --reference)"
        )
    return TABLES[suffix](paths[0], fields, data.bad_utf8)


def _rows_of_two_files(source: Path, target: Path, fields: Fields, bad_utf8: BadUtf8) -> Iterator[RawRow]:
    if len(fields.names) != 2:
        raise InputError(
            f"{source}, {target}: two files contain two fields, not {', '.join(fields.names)}; "
            "put all into one .tsv, .csv or .jsonl file"
        )
    # Count the lines before yielding a pair: all pairs after a missing line would be wrong, and only the end of the
    # files would reveal it.
    counts = [count_lines(path) for path in (source, target)]
    if counts[0] != counts[1]:
        # Lengths show a drift only between translations, which are about as long as their sources.
        hint = _drift_hint(source, target, min(counts)) if fields.label is None else "Look for a missing or extra line."
        raise InputError(
            f"{source} has {counted(counts[0], 'lines')}, but {target} has {counts[1]:,}; line n of one "
            f"must correspond to line n of the other. {hint}"
        )
    sources, targets = numbered_lines(source, bad_utf8), numbered_lines(target, bad_utf8)
    for (line, text), (_, translation) in zip(sources, targets, strict=True):
        yield RawRow(line, (text, translation))


def _drift_hint(source: Path, target: Path, count: int) -> str:
    import numpy as np

    if not count:
        return "Check the empty file."
    source_lengths, target_lengths = (
        np.fromiter(map(len, islice(read_lines(path, bad_utf8="replace"), count)), np.float64, count)
        for path in (source, target)
    )
    line = find_drift(source_lengths, target_lengths)
    if line is not None:
        return f"The line lengths stop agreeing at about line {line:,}: look for a missing or extra line there."
    if count < MIN_LINES:
        return "Check that both are the right files, and complete."
    varies = source_lengths.std() > 0 and target_lengths.std() > 0  # otherwise there is no correlation
    if not varies or np.corrcoef(source_lengths, target_lengths)[0, 1] < MIN_CORRELATION:
        return "The lengths of their lines do not correspond: check that the files belong together."
    return "The line lengths correspond up to the end of the shorter file: check the end of the longer one."


def find_drift(source_lengths: "np.ndarray", target_lengths: "np.ndarray") -> int | None:
    """Estimate the line, counted from 1, where two parallel files become misaligned; return None if they seem aligned.

    Lines that translate each other have similar lengths, so |log length ratio - its median| jumps where a line is
    missing on one side. The result is the most likely position of a jump in the mean of this quantity, under the
    assumption that it is exponentially distributed.

    Args:
        source_lengths: Number of characters of each source line, shape (n,).
        target_lengths: Number of characters of each target line, shape (n,).
    """
    import numpy as np

    count = len(source_lengths)
    if count < 2:
        return None
    log_ratio = np.log((source_lengths + 1) / (target_lengths + 1))
    distance = np.abs(log_ratio - np.median(log_ratio)) + 0.05  # so that lines near the median do not dominate
    # Likelihood of a jump after each line, with one exponential distribution before it and another after it.
    before = np.arange(1, count)
    sums = np.cumsum(distance)
    mean_before = sums[:-1] / before
    mean_after = (sums[-1] - sums[:-1]) / (count - before)
    gain = count * np.log(distance.mean()) - before * np.log(mean_before) - (count - before) * np.log(mean_after)
    gain[mean_after < 1.5 * mean_before] = 0.0  # after a jump, lines match worse
    best = int(np.argmax(gain))
    return best + 2 if gain[best] > 4.0 else None


def read_replies(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[SentencePair]:
    """Yield pairs of context and reply from a corpus of dialogues, or from its `part`, in file order.

    A line of a .jsonl file is a whole dialogue, {"source": ["Hi.", "Hello!", "How are you?"]}, in which each turn but
    the first is a reply; or one reply and its context, which is a text or a list: {"source": ["Hi."], "target":
    "Hello!"}. A turn may be a message, {"role": "user", "content": "Hi."}; the replies are then those of the assistant,
    as in `turns_of`. The keys are `source_field` and `target_field`. Other files contain pairs, as in `read_pairs`.

    Tabs separate the turns of a context. Inside a turn, each run of tabs and spaces becomes one space, and line breaks
    are kept. The oldest turns are left out of a context that would be longer than `data.filters.max_characters`.
    """
    if corpus.target is not None or ending_of(corpus.source) != ".jsonl":
        yield from read_pairs(corpus, data, report)
        return
    report = report or DropReport()
    # Parts are shares of dialogues, not of replies, so that no dialogue is in two parts.
    count = sum(1 for _ in _dialogue_rows(corpus, data))
    begin, end = part_of(corpus, count, "dialogues") if count else (0, 0)
    for line, turns, replies in islice(_dialogue_rows(corpus, data), begin, end):
        if not turns:
            report.drop("bad UTF-8", corpus.source, line)
        for index in replies:
            yield SentencePair(line, context(turns[:index], data.filters.max_characters), turns[index])


def context(turns: list[str], max_characters: int) -> str:
    """Join the latest turns of a dialogue with tabs: as many as fit into `max_characters`, but at least one."""
    first, size = len(turns) - 1, len(turns[-1])
    while first and size + len(TURN_SEPARATOR) + len(turns[first - 1]) <= max_characters:
        first -= 1
        size += len(TURN_SEPARATOR) + len(turns[first])
    return TURN_SEPARATOR.join(turns[first:])


def _dialogue_rows(corpus: CorpusConfig, data: DataConfig) -> Iterator[tuple[int, list[str], list[int]]]:
    """Yield the line number, turns and reply indices of each dialogue; no turns if its bad UTF-8 is skipped."""
    path = corpus_files(corpus, data)[0]
    for number, values in objects_of(path, data.bad_utf8):
        if values is None:
            yield number, [], []
            continue
        source: Any = values.get(corpus.source_field)
        turns, replies = turns_of(source if isinstance(source, list) else [source])
        if corpus.target_field in values:
            turns, replies = [*turns, values[corpus.target_field]], [len(turns)]
        if len(turns) < 2 or not all(replies) or not all(isinstance(turn, str) for turn in turns):
            raise InputError(
                f"{path}, line {number}: neither a dialogue nor a reply: {corpus.source_field!r} must be a list of at "
                f"least two texts or messages, or a text or a list with the reply in {corpus.target_field!r}; set "
                "source_field and target_field to its keys"
            )
        # An escaped lone surrogate is text in JSON but not in UTF-8.
        raw = [turn.encode("utf-8", "surrogatepass") for turn in turns]
        texts = [decode_utf8(turn, str(path), number, data.bad_utf8) for turn in raw]
        decoded = [one_turn(text) for text in texts if text is not None]
        yield (number, decoded, replies) if len(decoded) == len(turns) else (number, [], [])
