"""Random damage to the bytes of a file: changed, mostly near its beginning, and cut off."""

from collections.abc import Iterator
from random import Random


def damaged(content: bytes, count: int) -> Iterator[bytes]:
    """So many damaged copies of a file, always the same ones."""
    chance = Random(1)
    for _ in range(count):
        copy = bytearray(content)
        for _ in range(chance.choice((1, 3, 20))):
            copy[chance.randrange(min(len(copy), chance.choice((60, len(copy)))))] = chance.randrange(256)
        yield bytes(copy[: chance.choice((len(copy), chance.randrange(len(copy))))])
