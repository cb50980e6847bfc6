"""Readers of corpora: two parallel text files, or one table (.tsv, .csv) or list of objects (.jsonl) with all sides."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.chat_messages import BETWEEN, one_turn, turns_of
from heedful.data.readers.columns import LABEL_NAMES, OTHER_NAMES, TEXT_NAMES, is_header
from heedful.data.readers.files import (
    WHOLE,
    BadUtf8,
    NoItems,
    corpus_files,
    count_lines,
    decode_lines,
    decode_utf8,
    ending_of,
    open_bytes,
    read_lines,
)
from heedful.data.readers.filters import DropReport
from heedful.data.readers.rows import (
    OPTIONS,
    READERS,
    USUAL_FIELDS,
    Fields,
    RawRow,
    cells_of,
    parse_object,
    rows_of_table,
)
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    import numpy as np

TABLES = {**READERS, ".txt": rows_of_table}  # a text file with named columns is a table with tabs


class SentencePair(NamedTuple):
    """A source sentence and its translation, with their line number in the (source) file, from 1."""

    line: int
    source: str
    target: str


# Reads the sentence pairs of a corpus in file order, and counts pairs that cannot be used in a `DropReport`.
PairReader = Callable[..., Iterator[SentencePair]]


class TableRow(NamedTuple):
    """A row of a corpus: the wanted fields as texts, and the line of the (source) file where the row begins, from 1."""

    line: int
    texts: tuple[str, ...]


def read_pairs(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[SentencePair]:
    """Yield the sentence pairs of a parallel corpus, or of its `part`, in file order.

    Where bad UTF-8 is skipped, both sides of the pair are skipped, and `report` counts the pair.
    """
    corpus_kind(corpus)
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
    """Yield the wanted fields of each row of a corpus in file order.

    With `part` = (a, b), only rows int(a n) to int(b n) - 1 of n are read.

    A corpus of two files has two fields, whatever their names: a line of the source and a line of the target. The
    header of a table is not a row, whether the fields name its columns or `heedful.data.readers.columns` recognises it.

    Args:
        corpus: The files.
        data: The folder where relative names start, and what to do with bad UTF-8.
        fields: Names of columns or keys; in a table also numbers of columns, from 1.
        report: Counts the rows with bad UTF-8 that are skipped, and a header that was recognised.
        label: The field whose value may be a number, true or false in JSON; it is kept as its JSON text.
        turns: True if a text may be a list of turns of a dialogue in JSON; they are joined with tabs.
    """
    report = DropReport() if report is None else report
    selection = Fields(fields, label, turns)
    line_of_header = _line_of_header(corpus, data, selection)
    header = 1 if line_of_header else 0
    begin, end = 0, None
    if corpus.part != WHOLE:
        begin, end = part_of(corpus, sum(1 for _ in _rows(corpus, data, selection)) - header, "rows")
        end += header
    if header and begin == 0:
        report.drop("header", corpus.source, line_of_header)
    for line, texts in islice(_rows(corpus, data, selection), begin + header, end):
        sound = tuple(text for text in texts if text is not None)
        if len(sound) < len(texts):
            report.drop("bad UTF-8", corpus.source, line)
        else:
            yield TableRow(line, sound)


def part_of(corpus: CorpusConfig, count: int, unit: str) -> tuple[int, int]:
    """Return the range that `corpus.part` keeps of `count` items: the first item, and the one after the last.

    Parts that meet, such as (0, 0.9) and (0.9, 1), share nothing and leave nothing out. `unit` names the items in
    messages. Raises NoItems where there are none.
    """
    begin, end = corpus.part
    if not 0 <= begin < end <= 1:
        raise InputError(f"{corpus.source}: part is ({begin}, {end}); it goes from one share to a larger one, 0 to 1")
    first, stop = int(count * begin), int(count * end)
    if first == stop:
        none = f"{corpus.source}: part ({begin}, {end}) holds none of its {count:,} {unit}"
        raise (InputError if count else NoItems)(f"{none}; take a larger one, or put small files together")
    return first, stop


def corpus_kind(corpus: CorpusConfig) -> Literal["text", "tsv", "csv", "jsonl"]:
    """Return the format of a corpus: "text" for two parallel files, else "tsv", "csv" or "jsonl" by the file name."""
    if corpus.target is not None:
        return "text"
    kinds: dict[str, Literal["tsv", "csv", "jsonl"]] = {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl"}
    if (ending := ending_of(corpus.source)) in kinds:
        return kinds[ending]
    raise InputError(
        f"{corpus.source}: one file holds both languages if its name ends in .tsv, .csv or .jsonl (or in one "
        "of these and .gz, .bz2 or .xz); if this is one language, name the file of the other as target"
    )


def _line_of_header(corpus: CorpusConfig, data: DataConfig, fields: Fields) -> int:
    """Return the line of a table's header, if it has one, and that names none of the wanted fields; else 0."""
    if corpus.target is not None or ending_of(corpus.source) == ".jsonl":
        return 0
    rows = _rows(corpus, data, fields)
    first = next(rows, None)
    if first is None or None in first.texts:
        return 0
    line, cells = next(cells_of(corpus_files(corpus, data)[0], data.bad_utf8))
    if first.line != line:
        return 0
    names = [text or "" for text in first.texts]
    if not is_header(names, (row.texts for row in rows)):
        return 0
    # Labels that are read as texts would train without an error.
    if fields.label and names[0].lower() in LABEL_NAMES and names[-1].lower() in TEXT_NAMES:
        raise InputError(
            f"{corpus.source}: by its header, {names[0]!r} stands where the text should be and {names[-1]!r} where the "
            f'label should be; set source_field = "{names[-1]}" and target_field = "{names[0]}"'
        )
    has_more = len(cells or ()) > len(names)
    if has_more and tuple(fields.names) in USUAL_FIELDS and names[0].lower() in ("", *OTHER_NAMES):
        raise InputError(
            f"{corpus.source}: by its header, {names[0]!r} stands where the text should be; the first line has "
            f"{', '.join(map(repr, cells or ()))}. Set source_field and target_field (and pair_field) to names in it, "
            f"or to column numbers from 1 {OPTIONS}"
        )
    return line


def _rows(corpus: CorpusConfig, data: DataConfig, fields: Fields) -> Iterator[RawRow]:
    paths = corpus_files(corpus, data)
    if len(paths) == 2:
        return _rows_of_two_files(paths[0], paths[1], fields, data.bad_utf8)
    suffix = ending_of(corpus.source)
    if suffix not in TABLES:
        raise InputError(
            f"{corpus.source}: one file holds {', '.join(fields.names)} if its name ends in {', '.join(TABLES)} (or "
            "in one of these and .gz, .bz2 or .xz); if this is text only, name the file of labels or targets as target"
        )
    return TABLES[suffix](paths[0], fields, data.bad_utf8)


def _rows_of_two_files(source: Path, target: Path, fields: Fields, bad_utf8: BadUtf8) -> Iterator[RawRow]:
    if len(fields.names) != 2:
        raise InputError(
            f"{source}, {target}: two files hold two fields, not {', '.join(fields.names)}; "
            "put all into one .tsv, .csv or .jsonl file"
        )
    counts = [count_lines(path) for path in (source, target)]
    if counts[0] != counts[1]:
        hint = _drift_hint(source, target, min(counts)) if fields.label is None else "Look for a lost or an added line."
        raise InputError(
            f"{source} has {counted(counts[0], 'lines')} and {target} has {counts[1]:,}; line n of one "
            f"must belong to line n of the other. {hint}"
        )
    with open_bytes(source) as source_stream, open_bytes(target) as target_stream:
        sources = decode_lines(source_stream, str(source), bad_utf8=bad_utf8)
        targets = decode_lines(target_stream, str(target), bad_utf8=bad_utf8)
        for line, texts in enumerate(zip(sources, targets, strict=True), start=1):
            yield RawRow(line, texts)


def _drift_hint(source: Path, target: Path, count: int) -> str:
    import numpy as np

    source_lengths, target_lengths = (
        np.fromiter(map(len, islice(read_lines(path, bad_utf8="replace"), count)), np.float64, count)
        for path in (source, target)
    )
    line = find_drift(source_lengths, target_lengths)
    if line is None:
        return "As far as both go, the lengths of lines go together: look at the end of the longer file."
    return f"From about line {line:,} on, lengths do not go together: look for a lost or an added line there."


def find_drift(source_lengths: "np.ndarray", target_lengths: "np.ndarray") -> int | None:
    """Return the line, from 1, where two parallel files become misaligned, judged by line lengths; None if nowhere.

    Translations have similar lengths, other lines do not: |log length ratio - its median| jumps where a line is missing
    on one side. The line is the most likely place of one jump in the mean of an exponentially distributed quantity.

    Args:
        source_lengths: Characters of each source line, shape (n,).
        target_lengths: Characters of each target line, shape (n,).
    """
    import numpy as np

    count = len(source_lengths)
    if count < 2:
        return None
    log_ratio = np.log((source_lengths + 1) / (target_lengths + 1))
    distance = np.abs(log_ratio - np.median(log_ratio)) + 0.05  # some equal lines do not make a part certain
    # Likelihood of a jump after each line, with an exponential distribution before it and another one after it.
    before = np.arange(1, count)
    sums = np.cumsum(distance)
    mean_before = sums[:-1] / before
    mean_after = (sums[-1] - sums[:-1]) / (count - before)
    gain = count * np.log(distance.mean()) - before * np.log(mean_before) - (count - before) * np.log(mean_after)
    gain[mean_after < 1.5 * mean_before] = 0.0  # from there on, lines must fit worse
    best = int(np.argmax(gain))
    return best + 2 if gain[best] > 4.0 else None


def read_replies(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[SentencePair]:
    """Yield pairs of context and reply from a corpus of dialogues, or from its `part`, in file order.

    A line of JSONL is a whole dialogue, {"source": ["Hi.", "Hello!", "How are you?"]}, of which each turn but the first
    is a reply; or one reply and its context, a text or a list: {"source": ["Hi."], "target": "Hello!"}. A turn may be
    a message, {"role": "user", "content": "Hi."}: then those of the role assistant are the replies. The keys are
    `source_field` and `target_field`. Files of other kinds hold pairs, read by `read_pairs`.

    Tabs are between the turns of a context; tabs and spaces inside a turn become one space, and its line ends stay.
    The oldest turns are left out where a context would be longer than `data.filters.max_characters`.
    """
    if corpus_kind(corpus) != "jsonl":
        yield from read_pairs(corpus, data, report)
        return
    report = DropReport() if report is None else report
    count = sum(1 for _ in _dialogue_rows(corpus, data))
    begin, end = part_of(corpus, count, "dialogues") if count else (0, 0)
    for line, turns, replies in islice(_dialogue_rows(corpus, data), begin, end):
        if not turns:
            report.drop("bad UTF-8", corpus.source, line)
        for place in replies:
            yield SentencePair(line, context(turns[:place], data.filters.max_characters), turns[place])


def context(turns: list[str], longest: int) -> str:
    """Join the latest turns of a dialogue with tabs: as many as fit into `longest` characters, and at least one."""
    first, size = len(turns) - 1, len(turns[-1])
    while first and size + len(BETWEEN) + len(turns[first - 1]) <= longest:
        first -= 1
        size += len(BETWEEN) + len(turns[first])
    return BETWEEN.join(turns[first:])


def _dialogue_rows(corpus: CorpusConfig, data: DataConfig) -> Iterator[tuple[int, list[str], list[int]]]:
    """Yield the line, the turns and the places of replies among them of each dialogue; no turns if bad UTF-8."""
    path = corpus_files(corpus, data)[0]
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=data.bad_utf8), start=1):
            if line is None:
                yield number, [], []
                continue
            place = f"{path}, line {number}"
            values = parse_object(line, place)
            source: Any = values.get(corpus.source_field)
            turns, replies = turns_of(source if isinstance(source, list) else [source])
            if corpus.target_field in values:
                turns, replies = [*turns, values[corpus.target_field]], [len(turns)]
            if len(turns) < 2 or not all(replies) or not all(isinstance(turn, str) for turn in turns):
                raise InputError(
                    f"{place}: neither a dialogue nor a reply: {corpus.source_field!r} must be a list of two texts or "
                    f"messages or more, or a text or a list with the reply in {corpus.target_field!r}; set "
                    "source_field and target_field to its keys"
                )
            # an escaped lone surrogate is text to JSON but not to UTF-8
            raw = [turn.encode("utf-8", "surrogatepass") for turn in turns]
            texts = [decode_utf8(turn, str(path), number, data.bad_utf8) for turn in raw]
            sound = [one_turn(text) for text in texts if text is not None]
            yield (number, sound, replies) if len(sound) == len(turns) else (number, [], [])
