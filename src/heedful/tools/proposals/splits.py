"""Splits of texts into training, validation and test data by hash, so that near copies stay in one part."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeVar

import numpy as np

from heedful.data.preparation.prepared_data import folded
from heedful.errors import InputError

MAX_HELD_OUT = 1000  # texts in the validation or test part
MIN_GROUPS = 3  # that a class needs in order to be in all three parts

Part = Literal["train", "valid", "test"]
T = TypeVar("T")


def text_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def near_hash(text: str) -> int:
    """Return a 64-bit hash that is the same for texts that differ only in case, punctuation and spaces."""
    return text_hash(folded(text) or text)


@dataclass(frozen=True)
class Split:
    """The near hashes of the texts, or the hashes of the groups, that are held out.

    A text keeps its part when other texts are added, moved or removed, except for a few near the limits.
    """

    test: frozenset[int] = frozenset()
    valid: frozenset[int] = frozenset()

    def part(self, hashed: int) -> Part:
        if hashed in self.test:
            return "test"
        return "valid" if hashed in self.valid else "train"

    def without(self, parts: Collection[str]) -> "Split":
        """Return a split that holds nothing out for the given parts, "valid" or "test", which already exist."""
        return Split(frozenset() if "test" in parts else self.test, frozenset() if "valid" in parts else self.valid)

    def divide(
        self,
        items: Iterable[T],
        text_of: Callable[[T], str],
        can_be_judged: Callable[[T], bool],
        group_of: Callable[[T], int] | None = None,
        left_out: Callable[[T], object] | None = None,
    ) -> Iterator[tuple[Part, T]]:
        """Yield each item with the part of its text, "train", "valid" or "test".

        Of items with the same held-out text, only the first that is suitable for evaluation is yielded. `group_of`
        returns the hash that determines the part, if it is not the near hash of the text; `left_out` is called with
        each item that is not yielded.
        """
        judged: set[int] = set()
        for item in items:
            text = text_of(item)
            part = self.part(near_hash(text) if group_of is None else group_of(item))
            if part == "train":
                yield part, item
            elif (hashed := text_hash(text)) not in judged and can_be_judged(item):
                judged.add(hashed)
                yield part, item
            elif left_out:
                left_out(item)


def split(hashes: np.ndarray, valid: bool, test: bool, *, source: str, share: int = 20, alternative: str = "") -> Split:
    """Hold out one in `share` of the distinct texts, at most 1000, for each of the requested parts.

    `hashes` are distinct and sorted. `source` is the name of the data in an error message, and `alternative` the end of
    its remedy.
    """
    size = min(MAX_HELD_OUT, len(hashes) // share)
    if size == 0:
        raise too_few(source, len(hashes), share, alternative)
    test_end = size * test
    valid_end = test_end + size * valid
    return Split(frozenset(hashes[:test_end].tolist()), frozenset(hashes[test_end:valid_end].tolist()))


def split_by_class(
    members: Mapping[int, Collection[str]], share: int, min_groups: int | None = None, *, source: str
) -> Split:
    """Hold out groups of examples so that each class is in each part, if it has three groups or more.

    `members` has the classes of each group; at least `min_groups` groups are needed, by default `share`. Of each class,
    one group in `share` is held out for validation and as many for testing: at least one, and over all classes at most
    about 1000 per part. The groups of the rarest class are chosen first. No class loses its last group for training.
    """
    if len(members) < (min_groups or share):
        raise too_few(source, len(members), share)
    groups: dict[str, list[int]] = {}
    for group in sorted(members):
        for label in sorted(members[group]):  # the order of a set differs between processes
            groups.setdefault(label, []).append(group)
    remaining = Counter({label: len(of_class) for label, of_class in groups.items()})
    rate = min(1 / share, MAX_HELD_OUT / len(members))
    held_out: dict[Part, set[int]] = {"test": set(), "valid": set()}
    for of_class in sorted(groups.values(), key=len):
        size = max(1, int(rate * len(of_class))) if len(of_class) >= MIN_GROUPS else 0
        for part, in_part in held_out.items():
            reserve = 2 if part == "test" else 1  # groups that validation and training still need
            missing = size - sum(group in in_part for group in of_class)  # a group can contain several classes
            for group in of_class:
                free = group not in held_out["test"] and group not in held_out["valid"]
                if missing > 0 and free and all(remaining[label] > reserve for label in members[group]):
                    in_part.add(group)
                    remaining.subtract(members[group])
                    missing -= 1
    return Split(frozenset(held_out["test"]), frozenset(held_out["valid"]))


def classes_not_held_out(members: Mapping[int, Collection[str]], division: Split) -> list[str]:
    """List the classes that are missing from the validation or test part of a split, sorted."""
    parts = {"valid": set[str](), "test": set[str](), "train": set[str]()}
    for group, labels in members.items():
        parts[division.part(group)].update(labels)
    return sorted(set().union(*parts.values()) - (parts["valid"] & parts["test"]))


def too_few(source: str, count: int, share: int, alternative: str = "") -> InputError:
    return InputError(
        f"{source}: too few distinct inputs to hold some out for validation and test: {count}; give at least {share}"
        f"{alternative}"
    )
