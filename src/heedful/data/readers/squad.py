"""Reader of questions whose answers are spans of a text, in SQuAD's format (Rajpurkar et al. 2016, 2018)."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import corpus_files, part_of
from heedful.data.readers.files import decode_lines, open_bytes
from heedful.errors import InputError
from heedful.wording import counted

T = TypeVar("T")

MAX_LINE_BYTES = 1 << 40  # bytes of a line, as JSON often is a single one
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
    with `is_impossible` are not read. An answer must be exactly where the file says: moving it to where it may
    belong would be a guess.
    """
    path = corpus_files(corpus, data)[0]
    policy = "replace" if data.bad_utf8 == "replace" else "error"
    with open_bytes(path) as stream:
        lines = decode_lines(stream, str(path), bad_utf8=policy, longest=MAX_LINE_BYTES)
        text = "\n".join(line or "" for line in lines)

    def without_halves(values: dict[str, Any]) -> dict[str, Any]:
        """Put U+FFFD for half a character, as JSON can hold one and UTF-8 cannot."""
        return {key: HALF.sub("\ufffd", value) if isinstance(value, str) else value for key, value in values.items()}

    try:
        document = json.loads(text, object_hook=without_halves if policy == "replace" else None)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); questions are expected in SQuAD's format") from error
    articles = _field(document, "data", list, str(path))
    begin, end = part_of(corpus, len(articles), "articles")
    ids: set[str] = set()
    for number, article in enumerate(articles[begin:end], start=begin + 1):
        for paragraph in _field(article, "paragraphs", list, f"{path}, article {number}"):
            for question in _questions(paragraph, f"{path}, article {number}"):
                if question.id in ids:
                    raise InputError(f"{path}: two questions have the id {question.id!r}; rename one of them")
                ids.add(question.id)
                yield question._replace(article=number)


def _questions(paragraph: object, place: str) -> Iterator[SpanQuestion]:
    context = _field(paragraph, "context", str, place)
    for entry in _field(paragraph, "qas", list, place):
        name = _field(entry, "id", str, place)
        here = f"{place}, question {name!r}"
        values = _field(entry, "answers", list, here)
        if bool(values) == bool(entry.get("is_impossible", False)):
            count = counted(len(values), "answers")
            raise InputError(f'{here}: {count}; there must be some, or "is_impossible": true and none')
        answers = []
        for value in values:
            text, start = _field(value, "text", str, here), _field(value, "answer_start", int, here)
            if not text or start < 0 or not context.startswith(text, start):
                hint = "it stands nowhere in it, so correct the answer or take it out"
                if places := [place for place in range(len(context)) if text and context.startswith(text, place)]:
                    nearest = min(places, key=lambda place: abs(place - start))
                    hint = f"set answer_start to {nearest}, where it stands nearest"
                raise InputError(
                    f"{here}: the answer {text[:40]!r} does not stand at character {start} of its text; {hint}"
                )
            answers.append(GoldAnswer(text, start))
        yield SpanQuestion(name, _field(entry, "question", str, here), context, tuple(answers))


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
