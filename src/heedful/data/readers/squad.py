"""Reader of questions whose answers are spans of a text, in SQuAD's format (Rajpurkar et al. 2016, 2018)."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import corpus_files, part_of
from heedful.data.readers.files import numbered_lines
from heedful.errors import InputError
from heedful.wording import counted

T = TypeVar("T")

MAX_LINE_BYTES = 1 << 40  # JSON is often a single line
JSON_TYPES = {str: "a string", int: "an integer", list: "a list"}
HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate, half of a character


class GoldAnswer(NamedTuple):
    """An accepted answer to a question: a span of the context, and the index of its first character."""

    text: str
    start: int


class SpanQuestion(NamedTuple):
    """A question about a text, with all accepted answers: none if the text does not answer the question."""

    id: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...]
    article: int = 1  # the number of its article in the file, counted from 1


def read_squad(corpus: CorpusConfig, data: DataConfig) -> Iterator[SpanQuestion]:
    """Yield the questions of a .json or .json.gz file in SQuAD format, or of a `part` of its articles, in order.

    The whole file is read into memory. Bad UTF-8 in it can be replaced, but not skipped. Plausible answers to questions
    with `is_impossible` are ignored. An answer must be exactly where the file says, because any correction would be a
    guess.
    """
    path = corpus_files(corpus, data)[0]
    policy = "replace" if data.bad_utf8 == "replace" else "error"
    text = "\n".join(line or "" for _, line in numbered_lines(path, policy, longest=MAX_LINE_BYTES))

    def without_halves(values: dict[str, Any]) -> dict[str, Any]:
        """Replace lone surrogates, which JSON can contain but UTF-8 cannot, with U+FFFD."""
        return {key: HALF.sub("\ufffd", value) if isinstance(value, str) else value for key, value in values.items()}

    # Without "replace", `_field` rejects lone surrogates, and names the key that contains one.
    try:
        document = json.loads(text, object_hook=without_halves if policy == "replace" else None)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); questions are expected in SQuAD format") from error
    articles = _field(document, "data", list, str(path))
    # Split by article: if questions about one text were in two parts, training data would leak into validation.
    begin, end = part_of(corpus, len(articles), "articles")
    ids: set[str] = set()
    for number, article in enumerate(articles[begin:end], start=begin + 1):
        for paragraph in _field(article, "paragraphs", list, f"{path}, article {number}"):
            for question in _questions(paragraph, f"{path}, article {number}"):
                # Predictions in SQuAD format are stored by id, so one of two equal ids would be lost.
                if question.id in ids:
                    raise InputError(f"{path}: two questions have the id {question.id!r}; rename one of them")
                ids.add(question.id)
                yield question._replace(article=number)


def _questions(paragraph: object, location: str) -> Iterator[SpanQuestion]:
    context = _field(paragraph, "context", str, location)
    for entry in _field(paragraph, "qas", list, location):
        name = _field(entry, "id", str, location)
        where = f"{location}, question {name!r}"
        values = _field(entry, "answers", list, where)
        if bool(values) == bool(entry.get("is_impossible", False)):
            problem = f'{counted(len(values), "answers")}, but "is_impossible" is {json.dumps(bool(values))}'
            raise InputError(f"{where}: {problem}; correct one of them")
        answers = []
        for value in values:
            text, start = _field(value, "text", str, where), _field(value, "answer_start", int, where)
            if not text or start < 0 or not context.startswith(text, start):
                hint = "the text does not contain it, so correct or remove the answer"
                if starts := [index for index in range(len(context)) if text and context.startswith(text, index)]:
                    nearest = min(starts, key=lambda index: abs(index - start))
                    hint = f"set answer_start to {nearest}, the nearest position where it occurs"
                raise InputError(f"{where}: the answer {text[:40]!r} is not at character {start} of its text; {hint}")
            answers.append(GoldAnswer(text, start))
        yield SpanQuestion(name, _field(entry, "question", str, where), context, tuple(answers))


def _field(values: Any, key: str, kind: type[T], location: str) -> T:
    value = values.get(key) if isinstance(values, dict) else None
    if not isinstance(value, kind):
        raise InputError(
            f"{location}: {key!r} is missing or is not {JSON_TYPES[kind]}; questions are expected in SQuAD format"
        )
    if isinstance(value, str) and (half := HALF.search(value)):
        raise InputError(
            f"{location}: {key!r} contains a lone surrogate (U+{ord(half[0]):04X}), half of a character, at character "
            f'{half.start()}; fix it, or set data.bad_utf8 = "replace"'
        )
    return value
