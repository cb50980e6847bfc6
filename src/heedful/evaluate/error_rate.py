"""Word error rate and character error rate: edits that turn outputs into their references (Levenshtein 1966)."""

from collections.abc import Sequence

import numpy as np

from heedful.errors import InputError


def edit_distance(output: Sequence[str], reference: Sequence[str]) -> int:
    """Return the fewest insertions, deletions and substitutions of words or characters that make both equal."""
    numbers = {item: number for number, item in enumerate({*output, *reference})}
    wanted = np.array([numbers[item] for item in reference], np.int64)
    places = np.arange(len(wanted) + 1)
    row = places.copy()
    for item in output:
        changed = np.minimum(row[1:] + 1, row[:-1] + (wanted != numbers[item]))
        row = np.concatenate([row[:1] + 1, changed])
        row = np.minimum.accumulate(row - places) + places  # an insertion after any cheaper place
    return int(row[-1])


def word_error_rate(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Return the word error rate: edits of words over words of the references. Words stand between spaces.

    Case and punctuation count: a text that is to be compared without them is stripped of them before.

    Raises:
        InputError: There are not as many outputs as references, or no words in these.
    """
    return _rate([output.split() for output in outputs], [reference.split() for reference in references], "words")


def character_error_rate(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Return the character error rate: edits of characters over characters of the references; any space counts as one.

    Raises:
        InputError: There are not as many outputs as references, or no characters in these.
    """
    found, wanted = ([" ".join(text.split()) for text in texts] for texts in (outputs, references))
    return _rate(found, wanted, "characters")


def _rate(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], unit: str) -> float:
    if len(outputs) != len(references):
        raise InputError(f"{len(outputs):,} outputs for {len(references):,} references: there must be one for each")
    total = sum(map(len, references))
    if not total:
        raise InputError(f"there are no {unit} in the references, so that there is no error rate")
    return sum(map(edit_distance, outputs, references)) / total
