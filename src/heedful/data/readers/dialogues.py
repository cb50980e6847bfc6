"""Reader of dialogues: pairs of a context, the turns so far, and the reply."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.chat_messages import BETWEEN, Turns, one_turn, turns_of
from heedful.data.readers.corpus import SentencePair, corpus_files, corpus_kind, part_of, read_pairs
from heedful.data.readers.files import decode_lines, decode_utf8, open_bytes
from heedful.data.readers.filters import DropReport
from heedful.data.readers.rows import parse_object
from heedful.errors import InputError


class DialogueRow(NamedTuple):
    """A line of a .jsonl file of dialogues: turns, and the places of replies among them; none if bad UTF-8."""

    line: int
    turns: list[str]
    replies: list[int]


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
    count = sum(1 for _ in _rows(corpus, data))
    begin, end = part_of(corpus, count, "dialogues") if count else (0, 0)
    for row in (row for number, row in enumerate(_rows(corpus, data)) if begin <= number < end):
        if not row.turns:
            report.drop("bad UTF-8", corpus.source, row.line)
        for place in row.replies:
            yield SentencePair(row.line, context(row.turns[:place], data.filters.max_characters), row.turns[place])


def context(turns: list[str], longest: int) -> str:
    """Join the latest turns of a dialogue with tabs: as many as fit into `longest` characters, and at least one."""
    kept, size = len(turns) - 1, len(turns[-1])
    while kept and size + len(BETWEEN) + len(turns[kept - 1]) <= longest:
        kept -= 1
        size += len(BETWEEN) + len(turns[kept])
    return BETWEEN.join(turns[kept:])


def _rows(corpus: CorpusConfig, data: DataConfig) -> Iterator[DialogueRow]:
    path = corpus_files(corpus, data)[0]
    with open_bytes(path) as stream:
        for number, line in enumerate(decode_lines(stream, str(path), bad_utf8=data.bad_utf8), start=1):
            if line is None:
                yield DialogueRow(number, [], [])
                continue
            place = f"{path}, line {number}"
            turns, replies = _said(parse_object(line, place), corpus, place)
            sound = [decode_utf8(_bytes(turn), str(path), number, data.bad_utf8) for turn in turns]
            whole = [one_turn(turn) for turn in sound if turn is not None]
            yield DialogueRow(number, whole, replies) if len(whole) == len(turns) else DialogueRow(number, [], [])


def _said(values: dict[str, Any], corpus: CorpusConfig, place: str) -> Turns:
    """The turns of a JSON object, and which of them are replies."""
    said = values.get(corpus.source_field)
    turns, replies = turns_of(said if isinstance(said, list) else [said])
    if corpus.target_field in values:
        turns, replies = [*turns, values[corpus.target_field]], [len(turns)]
    if len(turns) < 2 or not all(replies) or not all(isinstance(turn, str) for turn in turns):
        raise InputError(
            f"{place}: neither a dialogue nor a reply: {corpus.source_field!r} must be a list of two texts or messages "
            f"or more, or a text or a list with the reply in {corpus.target_field!r}; set source_field and "
            "target_field to its keys"
        )
    return Turns(turns, replies)


def _bytes(text: str) -> bytes:
    """A text to be decoded: an escaped lone surrogate is text to JSON but not to UTF-8."""
    return text.encode("utf-8", "surrogatepass")
