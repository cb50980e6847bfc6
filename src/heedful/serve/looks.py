"""What has been looked at, as much as fits into memory."""

import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heedful.inspector.look import Look, Question
from heedful.inspector.overview import Json


def key(model: str, question: Question) -> str:
    """The name of a look: the same for the same question to the same model."""
    return hashlib.sha256(json.dumps([model, asdict(question)], sort_keys=True).encode()).hexdigest()[:16]


class Kept(NamedTuple):
    """A look that was made.

    Attributes:
        model: the name of the model that was looked into.
        look: the pass and its tensors, without what is in `shown`.
        shown: what a page shows of it first, as JSON.
    """

    model: str
    look: Look
    shown: bytes

    @classmethod
    def of(cls, model: str, look: Look, shown: Json) -> "Kept":
        """What is kept of a look: as JSON a search takes a tenth of the memory that its candidates take as objects."""
        pass_alone = replace(look, answers=[], lens=None, log=None, ghost=None)
        return cls(model, pass_alone, json.dumps(shown, ensure_ascii=False, allow_nan=False).encode())

    @property
    def overview(self) -> Json:
        """What a page shows of it first."""
        return json.loads(self.shown)


class Looks:
    """The looks that were used last.

    Args:
        most: bytes that are kept; the newest look is kept in any case.
    """

    def __init__(self, most: int = 256_000_000) -> None:
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def get(self, name: str) -> Kept | None:
        """The look of that name, if it is still there."""
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def add(self, name: str, kept: Kept) -> None:
        """Keep a look, and forget what was not used for longest."""
        self._kept[name] = kept
        self._kept.move_to_end(name)
        self._sizes[name] = size(kept)
        while self.bytes > self._most and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            del self._sizes[oldest]

    @property
    def bytes(self) -> int:
        """Of all that is kept."""
        return sum(self._sizes.values())


def size(held: Any) -> int:
    """The bytes of tensors, texts and numbers, and of what holds them; models and tokenizers are not counted."""
    if isinstance(held, np.ndarray):
        return held.nbytes + sys.getsizeof(held[:0])
    if is_dataclass(held):
        return sum(size(getattr(held, field.name)) for field in fields(held))
    if isinstance(held, Mapping):
        return sys.getsizeof(held) + sum(size(name) + size(value) for name, value in held.items())
    if isinstance(held, list | tuple):
        return sys.getsizeof(held) + sum(map(size, held))
    return sys.getsizeof(held) if isinstance(held, str | bytes | int | float) else 0
