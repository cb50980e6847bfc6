"""Reader of questions whose answers are spans of a text, in SQuAD's format (Rajpurkar et al. 2016, 2018)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import corpus_files, part_of
from heedful.data.readers.files import decode_lines, open_bytes
from heedful.errors import InputError
from heedful.wording import counted

T = TypeVar("T")

LONGEST_FILE = 1 << 40  # bytes of a line, as JSON often is a single one
HALF = re.compile("[\ud800-\udfff]")  # of a character: a lone surrogate


class GoldAnswer(NamedTuple):
    """An accepted answer to a question: a piece of the context, and the character at which it begins, from 0."""

    text: str
    start: int


class SpanQuestion(NamedTuple):
    """A question on a text, with all accepted answers; no answers mean that the text does not tell."""

    id: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...]
    article: int = 1  # of the file, from 1


def read_squad(corpus: CorpusConfig, data: DataConfig) -> Iterator[SpanQuestion]:
    """Yield the questions of a .json or .json.gz file in SQuAD's format, or of a `part` of its articles, in order.

    The file is held in memory, and bad UTF-8 in it cannot be skipped, only replaced. Plausible answers to questions
    with `is_impossible` are not read. An answer must stand exactly where the file says: moving it to where it may
    belong would be a guess.
    """
    path = corpus_files(corpus, data)[0]
    articles = _field(_parse(path, data), "data", list, str(path))
    begin, end = part_of(corpus, len(articles), "articles")
    seen: set[str] = set()
    for number, article in enumerate(articles[begin:end], start=begin + 1):
        for paragraph in _field(article, "paragraphs", list, f"{path}, article {number}"):
            for question in _questions(paragraph, f"{path}, article {number}"):
                if question.id in seen:
                    raise InputError(f"{path}: two questions have the id {question.id!r}; rename one of them")
                seen.add(question.id)
                yield question._replace(article=number)


def _parse(path: Path, data: DataConfig) -> object:
    policy = "replace" if data.bad_utf8 == "replace" else "error"
    with open_bytes(path) as stream:
        lines = decode_lines(stream, str(path), bad_utf8=policy, longest=LONGEST_FILE)
        text = "\n".join(line or "" for line in lines)
    try:
        return json.loads(text, object_hook=_whole if policy == "replace" else None)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); questions are expected in SQuAD's format") from error


def _whole(values: dict[str, Any]) -> dict[str, Any]:
    """The values of an object, with U+FFFD for half a character, as JSON can hold one and UTF-8 cannot."""
    return {key: HALF.sub("\ufffd", value) if isinstance(value, str) else value for key, value in values.items()}


def _questions(paragraph: object, place: str) -> Iterator[SpanQuestion]:
    context = _field(paragraph, "context", str, place)
    for entry in _field(paragraph, "qas", list, place):
        name = _field(entry, "id", str, place)
        here = f"{place}, question {name!r}"
        given = _field(entry, "answers", list, here)
        if bool(given) == bool(entry.get("is_impossible", False)):
            held = counted(len(given), "answers")
            raise InputError(f'{here}: {held}; there must be some, or "is_impossible": true and none')
        answers = tuple(_answer(answer, context, here) for answer in given)
        yield SpanQuestion(name, _field(entry, "question", str, here), context, answers)


def _answer(values: object, context: str, place: str) -> GoldAnswer:
    text, start = _field(values, "text", str, place), _field(values, "answer_start", int, place)
    if not text or start < 0 or not context.startswith(text, start):
        raise InputError(
            f"{place}: the answer {text[:40]!r} does not stand at character {start} of its text; "
            f"{_hint(text, context, start)}"
        )
    return GoldAnswer(text, start)


def _hint(text: str, context: str, start: int) -> str:
    found = [place for place in range(len(context)) if text and context.startswith(text, place)]
    if not found:
        return "it stands nowhere in it, so correct the answer or take it out"
    return f"set answer_start to {min(found, key=lambda place: abs(place - start))}, where it stands nearest"


def _field(values: Any, key: str, kind: type[T], place: str) -> T:
    value = values.get(key) if isinstance(values, dict) else None
    if not isinstance(value, kind):
        raise InputError(
            f"{place}: {key!r} is missing or is no {kind.__name__}; questions are expected in SQuAD's format"
        )
    if isinstance(value, str) and (half := HALF.search(value)):
        raise InputError(
            f"{place}: {key!r} holds a lone surrogate (U+{ord(half[0]):04X}), half of a character, at character "
            f'{half.start()}; mend it, or set data.bad_utf8 = "replace"'
        )
    return value
