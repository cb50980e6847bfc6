"""Readers of sentences whose words are given: a JSON array of words, or words with spaces between them."""

import json
from collections.abc import Iterator
from pathlib import Path

from heedful.data.readers.corpus import TableRow
from heedful.data.readers.files import ending_of, read_lines
from heedful.errors import InputError
from heedful.text.words import CutText

USUAL_KEYS = ("words", "tokens")


def words_in(line: str, place: str) -> CutText:
    """Read the words of a line: a JSON array of strings, or else what spaces separate.

    Raises:
        InputError: a word of the array is not a string, or is empty.
    """
    values = _json(line)
    return _checked(values if isinstance(values, list) else line.split(), place)


def has_word_lists(path: Path, key: str | None) -> bool:
    """True if the first line of a .jsonl file is an array, or an object with an array under a key of words.

    Raises:
        InputError: the file cannot be read.
    """
    if ending_of(path) != ".jsonl":
        return False
    values = _json(next(iter(read_lines(path)), ""))
    return isinstance(values, list) or (isinstance(values, dict) and isinstance(_words(values, key), list))


def read_word_lists(path: Path, key: str | None) -> Iterator[TableRow]:
    """Yield the words of each line of a .jsonl file, in file order, each as a row of one `CutText`.

    Args:
        path: The file; a line is an array of words, or an object that has one.
        key: The key of the words; None: "words" or "tokens".

    Raises:
        InputError: the file cannot be read, or a line has no array of words.
    """
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
