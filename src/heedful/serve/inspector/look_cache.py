"""Cache of looks, the recorded inspections of models: the last used ones, up to a limit of memory."""

import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heedful.inspector.look import Look, Question
from heedful.inspector.overview import Json


def look_id(server: str, model: str, question: Question) -> str:
    """Compute the id of an inspection, a hash of server, model and question; equal questions get equal ids.

    Args:
        server: what tells this start of the server from others, which may have had other weights under the same name.
        model: the name of the model.
        question: the question.
    """
    found = hashlib.sha256(json.dumps([server, model, question.told()], sort_keys=True).encode())
    found.update(question.file or b"")
    return found.hexdigest()[:16]


class CachedLook(NamedTuple):
    """Cache entry of a look, a recorded inspection of a model on a text.

    Attributes:
        model: the name of the model that was inspected.
        look: the forward pass and its tensors, without the results that are in `shown`.
        shown: the overview of the look, which the page shows first, as JSON.
    """

    model: str
    look: Look
    shown: bytes

    @classmethod
    def of(cls, model: str, look: Look, shown: Json) -> "CachedLook":
        """Make a cache entry of a look; its beam search is stored as JSON, in a tenth of the memory of its objects."""
        pass_alone = replace(look, answers=[], lens=None, log=None, ghost=None)
        return cls(model, pass_alone, json.dumps(shown, ensure_ascii=False, allow_nan=False).encode())

    @property
    def overview(self) -> Json:
        """Overview of a recorded inspection, which the page shows first, as JSON values."""
        return json.loads(self.shown)


class LookCache:
    """Cache of the last used looks, the recorded inspections of models.

    Args:
        most: the most bytes of all looks in the cache; the newest look stays in any case.
    """

    def __init__(self, most: int = 256_000_000) -> None:
        self._most = most
        self._looks: OrderedDict[str, CachedLook] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def get(self, name: str) -> CachedLook | None:
        """Return the cached look (a recorded inspection) with an id, or None if it is not in the cache."""
        if name in self._looks:
            self._looks.move_to_end(name)
        return self._looks.get(name)

    def add(self, name: str, made: CachedLook) -> None:
        """Add a recorded inspection to the cache, and drop the least recently used ones above the memory limit."""
        self._looks[name] = made
        self._looks.move_to_end(name)
        self._sizes[name] = size(made)
        while self.bytes > self._most and len(self._looks) > 1:
            oldest, _ = self._looks.popitem(last=False)
            del self._sizes[oldest]

    @property
    def bytes(self) -> int:
        """Memory of all looks in the cache, in bytes."""
        return sum(self._sizes.values())


def size(held: Any) -> int:
    """Estimate the memory of a value in bytes: arrays, texts, numbers and containers; models and tokenizers count 0."""
    if isinstance(held, np.ndarray):
        return held.nbytes + sys.getsizeof(held[:0])
    if is_dataclass(held):
        return sum(size(getattr(held, field.name)) for field in fields(held))
    if isinstance(held, Mapping):
        return sys.getsizeof(held) + sum(size(name) + size(value) for name, value in held.items())
    if isinstance(held, list | tuple):
        return sys.getsizeof(held) + sum(map(size, held))
    return sys.getsizeof(held) if isinstance(held, str | bytes | int | float) else 0
