"""A look at labelled text: which classes there are, how long texts are, and which may be held out."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from heedful.config.schema import CorpusConfig
from heedful.data.labelled import Example
from heedful.data.survey import Side, Tally, source_hash
from heedful.errors import InputError


@dataclass(frozen=True)
class LabelSurvey:
    """What labelled text looks like."""

    side: Side  # the texts; of a pair, both as one
    is_pairs: bool
    labels: Counter[str]
    empty: int  # without text
    hashes: np.ndarray  # of the different texts that can be held out; sorted, uint64
    longest_at: int  # the line of the longest text, from 1

    @property
    def examples(self) -> int:
        """How many there are."""
        return self.labels.total()

    @property
    def counts_rows(self) -> bool:
        """Tell whether the labels may be ids or row numbers: whole numbers, no two of them equal."""
        return len(self.labels) == self.examples and all(map(str.isdecimal, self.labels))


def text_of(example: Example) -> str:
    """All that is read of an example."""
    return example.text if example.pair is None else f"{example.text}\t{example.pair}"


def survey_labelled(examples: Iterable[Example], corpus: CorpusConfig) -> LabelSurvey:
    """Read all examples of a corpus once; takes about 20 bytes of memory for each.

    Raises:
        InputError: They cannot be read, or there are none.
    """
    tally, labels, hashes = Tally(), Counter[str](), array("Q")
    empty = longest = longest_at = 0
    for example in examples:
        text = text_of(example)
        tally.add(text)
        labels[example.label] += 1
        if text.strip():
            hashes.append(source_hash(text))
        else:
            empty += 1
        if len(text) > longest:
            longest, longest_at = len(text), example.line
    if not labels:
        raise InputError(f"{corpus.source}: there are no examples in it; check the file")
    hashed = np.unique(np.array(hashes))
    return LabelSurvey(tally.side(), corpus.pair_field is not None, labels, empty, hashed, longest_at)
