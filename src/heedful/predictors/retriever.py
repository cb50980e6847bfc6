"""Semantic search: texts as vectors, the nearest texts to a query, and an index of vectors on disk."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heedful.architectures import SentenceEncoder
from heedful.config.schema import DataConfig
from heedful.errors import InputError, RunError
from heedful.predictors.predictor import TEXTS, Done, ModelInputs, Predictor
from heedful.predictors.text_predictor import BatchedModel, Text, row_inputs
from heedful.storage.atomic import atomic_file
from heedful.text.tokenizer import Tokenizer
from heedful.wording import counted

VECTORS, DIGEST, SHAPE = "vectors", "sha256", "shape"


def write_index(path: Path, vectors: np.ndarray, made_of: Mapping[str, str]) -> None:
    """Write vectors (N, D), float32, as an index file; the file appears as a whole or not at all.

    `made_of` has the digests of all that the vectors depend on, such as the model and the corpus.
    """
    stored = np.ascontiguousarray(vectors, np.float32)
    try:
        with atomic_file(path) as file:
            file.write(save({VECTORS: stored}, {**made_of, DIGEST: digest(stored), SHAPE: str(stored.shape)}))
    except OSError as error:
        raise RunError(f"cannot write {path}: {error}; make room for it or name another file") from error


def read_index(path: Path, made_of: Mapping[str, str]) -> np.ndarray:
    """Read the vectors of an index file that `write_index` wrote, unchanged and from sources with the same digests."""
    try:
        with safe_open(path, framework="numpy") as file:
            facts, vectors = file.metadata() or {}, file.get_tensor(VECTORS)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: no readable index ({error}); delete it, or name another file") from error
    shape = facts.get(SHAPE, str(vectors.shape))  # an older index does not say it
    is_sound = vectors.dtype == np.float32 and vectors.ndim == 2 and str(vectors.shape) == shape
    if not is_sound or facts.get(DIGEST) != digest(vectors):
        raise InputError(f"{path}: does not hold the vectors that were written; delete it, and it is made again")
    changed = [name for name, value in made_of.items() if facts.get(name) != value]
    if changed:
        raise InputError(
            f"{path}: was made of another {' and another '.join(changed)}; delete it, and it is made again, or name "
            "another file"
        )
    return vectors


def digest(vectors: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()


BLOCK = 1 << 16  # vectors compared at a time

Vectors = NDArray[np.float32]


class Hit(NamedTuple):
    """Text found by a search, with its cosine similarity to the query and its number."""

    score: float  # the cosine similarity to the query
    number: int  # its index among all texts, from 0
    text: str


class Retriever(Predictor[SentenceEncoder, Vectors]):
    """Retriever for semantic search: a sentence encoder with its tokenizer. A vector depends on its own text alone."""

    tokenizer: Tokenizer

    def __init__(self, model: SentenceEncoder, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.reader = BatchedModel(model, tokenizer, data.max_length)
        self.width = model.size

    @overload
    def encode(self, texts: str, done: Done = ...) -> Vectors: ...
    @overload
    def encode(self, texts: Iterable[str], done: Done = ...) -> Vectors: ...
    def encode(self, texts: object, done: Done = lambda _: None) -> Vectors:
        """Encode a text as a float32 vector of length 1 and shape (D,), or several texts as vectors (N, D).

        Args:
            texts: a string, or any number of strings.
            done: called with 1 for each text, when it is encoded.
        """
        vectors = TEXTS.one_or_all(lambda each: self.encode_lines(each, done), texts)
        return stacked(vectors, self.width) if isinstance(vectors, list) else vectors

    __call__ = predict = encode

    def encode_lines(self, texts: Iterable[str], done: Done = lambda _: None) -> Iterator[Vectors]:
        """Encode any number of texts, in their order and in bounded memory; yield the vector of each, (D,)."""
        for vector in self.reader.read(map(Text, TEXTS.each(texts))):
            done(1)
            yield vector.numpy()

    def model_inputs(self, value: str, second: str | None) -> ModelInputs:
        return row_inputs(self.model, self.reader.encode(Text(value, second)))

    @overload
    def search(self, queries: str, texts: Iterable[str], k: int = 10, vectors: Vectors | None = None) -> list[Hit]: ...
    @overload
    def search(
        self, queries: Iterable[str], texts: Iterable[str], k: int = 10, vectors: Vectors | None = None
    ) -> list[list[Hit]]: ...
    def search(
        self, queries: object, texts: object, k: int = 10, vectors: Vectors | None = None
    ) -> list[Hit] | list[list[Hit]]:
        """Find the texts nearest to a query, or to each of several queries, best first; ties in the order of the texts.

        Args:
            queries: a string, or an iterable of strings.
            texts: the texts to search.
            k: the most texts to find for each query.
            vectors: the vectors of `texts`, if computed already with `encode`.
        """
        lines = texts if isinstance(texts, list) else list(TEXTS.each(texts))
        index = self.encode(lines) if vectors is None else vectors
        check_search(lines, index, k)
        return TEXTS.one_or_all(lambda each: hits(self.encode(each), lines, index, k), queries)


def stacked(vectors: Iterable[Vectors], width: int) -> Vectors:
    """Stack any number of vectors, each (D,), as one array (N, D)."""
    return np.array(list(vectors), np.float32).reshape(-1, width)


def check_search(texts: Sequence[object], vectors: Vectors, k: int) -> None:
    if k < 1:
        raise InputError(f"k = {k}: at least 1 text for each query")
    if len(vectors) != len(texts):
        raise InputError(
            f"{counted(len(texts), 'texts')} and {counted(len(vectors), 'vectors')}; give the vectors of these texts"
        )


def hits(queries: Vectors, texts: Sequence[str], vectors: Vectors, k: int) -> Iterator[list[Hit]]:
    """Find the k texts nearest to each query (Q, D) by their vectors (N, D), best first."""
    for scores, places in zip(*nearest(queries, vectors, k), strict=True):
        yield [Hit(float(score), int(place), texts[int(place)]) for score, place in zip(scores, places, strict=True)]


def nearest(queries: Vectors, vectors: Vectors, k: int) -> tuple[Vectors, NDArray[np.int64]]:
    """Find the k vectors (N, D) with the largest dot products for each query (Q, D).

    Returns:
        Scores in falling order, and the indices of the vectors, ties by lower index; both (Q, min(k, N)).
    """
    scores, places = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    for start in range(0, len(vectors), BLOCK):
        block = queries @ vectors[start : start + BLOCK].T
        numbers = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        # the best so far come first, so that the stable sort keeps the lower index of equals
        scores, places = np.concatenate([scores, block], axis=1), np.concatenate([places, numbers], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, places = np.take_along_axis(scores, order, axis=1), np.take_along_axis(places, order, axis=1)
    return scores, places
