"""Word error rate and character error rate: edits that turn outputs into their references (Levenshtein 1966)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.errors import InputError
from heedful.evaluate.metrics import of_sums


def edit_distance(output: Sequence[str], reference: Sequence[str]) -> int:
    """Return the fewest insertions, deletions and substitutions of words or characters that make both equal.

    Raises:
        InputError: rapidfuzz is not installed.
    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise InputError(f"error rates need rapidfuzz ({error}): pip install 'heedful[audio]'") from error
    return Levenshtein.distance(output, reference)


@dataclass(frozen=True)
class Errors:
    """Edits of each output, and the length of its reference, in words or characters; arrays of int64, one dimension."""

    edits: np.ndarray
    lengths: np.ndarray

    def rate(self, chosen: np.ndarray | slice = slice(None)) -> float:
        """Compute the error rate of the outputs with some numbers, which may repeat; NaN if there is nothing to say."""
        length = int(self.lengths[chosen].sum())
        return int(self.edits[chosen].sum()) / length if length else math.nan


def word_errors(outputs: Sequence[str], references: Sequence[str]) -> Errors:
    """Count the edits of words that turn each output into its reference. Words stand between spaces.

    Case and punctuation count: a text that is to be compared without them is stripped of them before.

    Raises:
        InputError: There are not as many outputs as references, or no words in these.
    """
    return _errors([output.split() for output in outputs], [reference.split() for reference in references], "words")


def character_errors(outputs: Sequence[str], references: Sequence[str]) -> Errors:
    """Count the edits of characters that turn each output into its reference; any space counts as one.

    Raises:
        InputError: There are not as many outputs as references, or no characters in these.
    """
    found, wanted = ([" ".join(text.split()) for text in texts] for texts in (outputs, references))
    return _errors(found, wanted, "characters")


def _errors(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]], unit: str) -> Errors:
    if len(outputs) != len(references):
        raise InputError(f"{len(outputs):,} outputs for {len(references):,} references: there must be one for each")
    lengths = np.array([len(reference) for reference in references], np.int64)
    if not lengths.sum():
        raise InputError(f"there are no {unit} in the references, so that there is no error rate")
    return Errors(np.array(list(map(edit_distance, outputs, references)), np.int64), lengths)


def _ratio(edits: int, length: int) -> float:
    """Error rate of outputs with so many edits; NaN without a reference to compare them with."""
    return edits / length if length else math.nan


def _rows(errors: Errors) -> np.ndarray:
    return np.stack([errors.edits, errors.lengths], axis=1)


WER = of_sums(lambda texts: _rows(word_errors(*texts.compared)), _ratio, lower_is_better=True)
CER = of_sums(lambda texts: _rows(character_errors(*texts.compared)), _ratio, lower_is_better=True)
