"""Texts to vectors, and queries to the texts whose vectors are nearest.

N texts, Q queries, D model.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
import torch

from heedful.config.schema import DataConfig
from heedful.decode.predictor import Done, as_text, one_or_all, several
from heedful.errors import InputError
from heedful.models import SentenceEncoder
from heedful.predict.batching import Text, windows
from heedful.predict.text_predictor import TextReader
from heedful.text.tokenizer import Tokenizer
from heedful.wording import counted

BLOCK = 1 << 16  # vectors compared at a time


class Hit(NamedTuple):
    """A text that was found."""

    score: float  # the cosine of its angle with the query
    number: int  # its place among all texts, from 0
    text: str


class Retriever(TextReader[SentenceEncoder]):
    """A sentence encoder and its tokenizer. The vector of a text never depends on the texts around it."""

    def __init__(self, model: SentenceEncoder, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.width = model.backbone.embedding.weight.size(1)

    def encode(self, texts: str | Iterable[str], done: Done = lambda _: None) -> np.ndarray:
        """The vector of a text, float32, of length 1 and shape (D,); or those of several texts, (N, D).

        Args:
            texts: a string, or any number of them.
            done: told how many more of them are encoded, a window at a time.

        Raises:
            InputError: something is no text.
        """
        return one_or_all(partial(self._encoded, done=done), texts, as_text)

    def windows(self, texts: Iterable[str], done: Done = lambda _: None) -> Iterator[np.ndarray]:
        """The vectors of texts, (N, D), a window of texts at a time.

        Raises:
            InputError: something is no text.
        """
        for window in windows(self.reader.read(map(Text, several(texts, as_text)))):
            done(len(window))
            yield torch.stack(window).numpy()

    @overload
    def search(
        self, queries: str, texts: Iterable[str], k: int = 10, vectors: np.ndarray | None = None
    ) -> list[Hit]: ...
    @overload
    def search(
        self, queries: Iterable[str], texts: Iterable[str], k: int = 10, vectors: np.ndarray | None = None
    ) -> list[list[Hit]]: ...
    def search(
        self, queries: Any, texts: Iterable[str], k: int = 10, vectors: np.ndarray | None = None
    ) -> list[Hit] | list[list[Hit]]:
        """The texts nearest to a query, or to each of several queries, best first; of equal ones the first.

        Args:
            queries: what to look for: a string, or an iterable of them.
            texts: what to look through.
            k: how many of them, at most.
            vectors: those of `texts` if they are at hand, as `encode` gives them.

        Raises:
            InputError: something is no text, `k` is below 1, or there are not as many vectors as texts.
        """
        if k < 1:
            raise InputError(f"k = {k}: at least 1 text for each query")
        lines = texts if isinstance(texts, list) else list(several(texts, as_text))
        there = self.encode(lines) if vectors is None else vectors
        if len(there) != len(lines):
            raise InputError(
                f"{counted(len(lines), 'texts')} and {counted(len(there), 'vectors')}; give the vectors of these texts"
            )
        return one_or_all(lambda each: self._found(each, lines, there, k), queries, as_text)

    def _encoded(self, texts: Iterable[str], done: Done = lambda _: None) -> np.ndarray:
        return np.concatenate([np.empty((0, self.width), np.float32), *self.windows(texts, done)])

    def _found(self, queries: Iterable[str], texts: list[str], vectors: np.ndarray, k: int) -> list[list[Hit]]:
        scores, places = nearest(self._encoded(queries), vectors, k)
        return [
            [Hit(float(score), int(place), texts[int(place)]) for score, place in zip(row, found, strict=True)]
            for row, found in zip(scores, places, strict=True)
        ]


def nearest(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest dot products of each query (Q, D) with vectors (N, D), and whose they are.

    Returns:
        Scores in falling order, and the numbers of their vectors, of equal ones the first; both (Q, min(k, N)).
    """
    scores, places = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    for start in range(0, len(vectors), BLOCK):
        block = queries @ vectors[start : start + BLOCK].T
        numbers = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        scores, places = np.concatenate([scores, block], axis=1), np.concatenate([places, numbers], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, places = np.take_along_axis(scores, order, axis=1), np.take_along_axis(places, order, axis=1)
    return scores, places
