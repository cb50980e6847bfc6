"""Readers of sentences whose words are given: a JSON array of words, or words with spaces between them."""

import json
from collections.abc import Iterator
from pathlib import Path

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import TableRow
from heedful.data.readers.files import ending_of, read_lines
from heedful.data.readers.tagged import read_tagged
from heedful.errors import InputError
from heedful.text.words import CutText

USUAL_KEYS = ("words", "tokens")
TAGGED_FILES = (".conll", ".conllu", ".bio", ".bio2", ".iob", ".iob2")  # of what a tagger learns from


def words_in(line: str, place: str) -> CutText:
    """Read the words of a line: a JSON array of strings, or else what spaces separate.

    Raises:
        InputError: a word of the array is not a string, or is empty.
    """
    values = _json(line)
    return _checked(values if isinstance(values, list) else line.split(), place)


def has_word_lists(path: Path, key: str | None) -> bool:
    """True for a file of tagged words, and if the first line of a .jsonl file is or holds an array of words.

    Raises:
        InputError: the file cannot be read.
    """
    if ending_of(path) != ".jsonl":
        return ending_of(path) in TAGGED_FILES
    values = _json(next(iter(read_lines(path)), ""))
    return isinstance(values, list) or (isinstance(values, dict) and isinstance(_words(values, key), list))


def read_word_lists(path: Path, key: str | None) -> Iterator[TableRow]:
    """Yield the words of each line of a .jsonl file, or sentence of tagged words, each as a row of one `CutText`.

    Args:
        path: The file; a line of .jsonl is an array of words, or an object that has one.
        key: The key of the words; None: "words" or "tokens".

    Raises:
        InputError: the file cannot be read, or a line has no array of words.
    """
    if ending_of(path) in TAGGED_FILES:
        tagged = read_tagged(CorpusConfig(source=str(path.absolute())), DataConfig())
        yield from (TableRow(sentence.line, (CutText(sentence.words),)) for sentence in tagged)
        return
    for number, line in enumerate(read_lines(path), start=1):
        values = _json(line)
        words = _words(values, key) if isinstance(values, dict) else values
        place = f"{path}, line {number}"
        if not isinstance(words, list):
            keys = f"{key!r}" if key else " or ".join(map(repr, USUAL_KEYS))
            raise InputError(
                f"{place}: there is no list of words, although the first line has one; each line is an array of "
                f"words, or an object with an array under {keys} (--source-field names another key)"
            )
        yield TableRow(number, (_checked(words, place),))


def _json(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _words(values: dict[str, object], key: str | None) -> object:
    return next((values[name] for name in ([key] if key else USUAL_KEYS) if name in values), None)


def _checked(words: list[object] | list[str], place: str) -> CutText:
    try:
        return CutText(words)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
