"""Split of generated text into training, validation and test data, which follows from the English text alone."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


def divide(
    drawn: Iterator[T],
    text: Callable[[T], str],
    sizes: Mapping[str, int],
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[T]]:
    """Split generated items of distinct text into "train", "valid" and "test", as many for each as `sizes` tells.

    A checksum of the text decides: one in 16 is for validation and one for testing, whatever is drawn beside it.

    Args:
        drawn: Generates items, as many as it takes.
        text: Gives the English text of an item.
        sizes: The wanted number of items for each of the three parts.
        done: Called with the number of items that are added.
    """
    parts: dict[str, list[T]] = {purpose: [] for purpose in sizes}
    seen: set[str] = set()
    while any(len(parts[purpose]) < size for purpose, size in sizes.items()):
        item = next(drawn)
        english = text(item)
        purpose = {0: "valid", 1: "test"}.get(crc32(english.encode()) % 16, "train")
        if english not in seen and len(parts[purpose]) < sizes[purpose]:
            seen.add(english)
            parts[purpose].append(item)
            done(1)
    return parts
