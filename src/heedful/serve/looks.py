"""What has been looked at, as much as fits into memory."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import asdict
from typing import NamedTuple

from heedful.inspect_.look import Look, Question
from heedful.inspect_.overview import Json


def key(model: str, question: Question) -> str:
    """The name of a look: the same for the same question to the same model."""
    return hashlib.sha256(json.dumps([model, asdict(question)], sort_keys=True).encode()).hexdigest()[:16]


class Kept(NamedTuple):
    """A look, the model that was looked into, and what a page shows of it first."""

    model: str
    look: Look
    overview: Json


class Looks:
    """The looks that were used last.

    Args:
        most: bytes of tensors that are kept; the newest look is kept in any case.
    """

    def __init__(self, most: int = 256_000_000) -> None:
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def get(self, name: str) -> Kept | None:
        """The look of that name, if it is still there."""
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def add(self, name: str, kept: Kept) -> None:
        """Keep a look, and forget what was not used for longest."""
        self._kept[name] = kept
        self._kept.move_to_end(name)
        while self.bytes > self._most and len(self._kept) > 1:
            self._kept.popitem(last=False)

    @property
    def bytes(self) -> int:
        """Of all tensors that are kept."""
        return sum(values.nbytes for kept in self._kept.values() for values in kept.look.trace.tensors.values())
