"""Random choices of a generated corpus, and the split of its items into training, validation and test data."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


class Sampler:
    """Sampler that calls only `random.random`, whose sequence is the same in all versions of Python."""

    def __init__(self, rng: random.Random) -> None:
        self._random = rng.random

    def one(self, items: Sequence[T]) -> T:
        return items[int(self._random() * len(items))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def number(self, least: int, most: int) -> int:
        return self.one(range(least, most + 1))


def divide(
    items: Iterator[T],
    text: Callable[[T], str],
    sizes: Mapping[str, int],
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[T]]:
    """Split generated items with distinct text into "train", "valid" and "test", by a checksum of the text alone.

    One text in 16 is for validation, and one in 16 for testing, whatever the seed and the sizes: a training text of one
    corpus is never a validation or test text of another.

    Args:
        items: An endless generator of items.
        text: Returns the text of an item, which identifies it.
        sizes: The number of items for each part.
        done: Called with the number of items added.
    """
    parts: dict[str, list[T]] = {part: [] for part in sizes}
    texts: set[str] = set()
    while any(len(parts[part]) < size for part, size in sizes.items()):
        item = next(items)
        key = text(item)
        part = {0: "valid", 1: "test"}.get(crc32(key.encode()) % 16, "train")
        if key not in texts and len(parts[part]) < sizes[part]:
            texts.add(key)
            parts[part].append(item)
            done(1)
    return parts
