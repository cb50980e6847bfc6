"""Overlap of held-out and training data: counts validation and test texts that are trained on as well.

Scores on such texts say less than they seem to.

A held-out text is shared if the same text stands in the training data, character by character but for space around it,
or almost: the same but for case, punctuation and space. Texts with different numbers are different texts. Memory grows
with the held-out text only, and of that no more than `MOST` texts are looked up.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.filters import folded
from heedful.errors import InputError
from heedful.wording import counted

MOST = 200_000  # held-out texts that are looked up
SHOWN = 3  # examples in a message
SHOWN_CHARACTERS = 60
SHORTEST_LINE = 40  # characters of a line of running text: shorter ones recur by chance


Texts = Callable[[CorpusConfig], Iterable[str]]


@dataclass
class Overlap:
    """Counts of held-out texts that also stand in the training data, exactly or nearly, with a few examples."""

    texts: int  # held-out texts that were looked up
    exact: int = 0
    near: int = 0  # near copies, exact ones left out
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shared = self.exact + self.near
        shown = "; ".join(repr(shortened(text)) for text in self.examples)
        return (
            f"{shared:,} of {counted(self.texts, 'texts')} ({shared / self.texts:.1%}) also in the training data, "
            f"{self.exact:,} word for word and {self.near:,} but for case and punctuation: {shown}. "
            "They make its scores better than they would be on new text"
        )


def shortened(text: str) -> str:
    """Shorten a text to its beginning, for messages to people."""
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of running text that are long enough to be looked up elsewhere: shorter ones recur by chance."""
    return (line for line in text.split("\n") if len(line) >= SHORTEST_LINE)


def overlap(held_out: Iterable[str], training: Iterable[str]) -> Overlap:
    """Count the held-out texts that also stand in the training data, exactly or nearly; both are read once."""
    held = [text.strip() for text in islice(held_out, MOST) if text.strip()]
    exact, near = {_key(text) for text in held}, {_near_key(text) for text in held}
    found_exact: set[int] = set()
    found_near: set[int] = set()
    for text in training:
        if (key := _near_key(text.strip())) in near:
            found_near.add(key)
            if (key := _key(text.strip())) in exact:
                found_exact.add(key)
    found = Overlap(len(held))
    for text in held:
        is_exact = _key(text) in found_exact
        is_near = not is_exact and _near_key(text) in found_near
        found.exact += is_exact
        found.near += is_near
        if (is_exact or is_near) and len(found.examples) < SHOWN:
            found.examples.append(text)
    return found


def report_overlap(data: DataConfig, texts: Texts, report: Callable[[str], None]) -> None:
    """Report how much of the validation data and of the test data also stands in the training data, if any does."""
    for name, corpus in (("validation", data.valid), ("test", data.test)):
        if corpus is None:
            continue
        try:
            found = overlap(texts(corpus), (text for part in data.train for text in texts(part)))
        except InputError as error:
            report(f"{name} data: not compared with the training data: {error}")
            continue
        if found.examples:
            report(f"{name} data: {found}")


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def _near_key(text: str) -> int:
    return _key(folded(text) or text)
