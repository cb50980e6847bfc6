"""Semantic search: texts as vectors, the texts nearest to a query, and an index of vectors on disk.

N vectors, Q queries, D vector size.
"""

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heedful.config.schema import DataConfig
from heedful.errors import InputError, RunError
from heedful.predictors.predictor import TEXTS, Done, InputKind, ModelInputs, Predictor
from heedful.predictors.text_predictor import BatchedModel, Text, row_inputs
from heedful.storage.atomic import atomic_file
from heedful.text.tokenizer import Tokenizer
from heedful.wording import counted

if TYPE_CHECKING:  # torch is imported with the model
    from heedful.architectures import SentenceEncoder

LOG = logging.getLogger(__name__)  # warnings appear on standard error unless the program configures logging
VECTORS, DIGEST, SHAPE = "vectors", "sha256", "shape"  # names in an index file
BLOCK = 1 << 16  # vectors compared at a time

Vectors = NDArray[np.float32]
I_contra = TypeVar("I_contra", contravariant=True)


def write_index(path: Path, vectors: np.ndarray, sources: Mapping[str, str]) -> None:
    """Write vectors (N, D), float32, as an index file; the file appears completely or not at all.

    `sources` contains the digests of everything that the vectors depend on, such as the model and the corpus.
    """
    stored = np.ascontiguousarray(vectors, np.float32)
    try:
        with atomic_file(path) as file:
            file.write(save({VECTORS: stored}, {**sources, DIGEST: digest(stored), SHAPE: str(stored.shape)}))
    except OSError as error:
        raise RunError(f"cannot write {path}: {error}; free disk space, or choose another file") from error


def read_index(path: Path, sources: Mapping[str, str]) -> np.ndarray:
    """Read the vectors of an index file that `write_index` wrote.

    Raises:
        InputError: The file is damaged, or it was written for sources with other digests.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            facts, vectors = file.metadata() or {}, file.get_tensor(VECTORS)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: is not a readable index ({error}); delete it, or choose another file") from error
    # The digest covers only the bytes, which do not determine the shape.
    shape = facts.get(SHAPE, str(vectors.shape))  # an older index does not store it
    is_sound = vectors.dtype == np.float32 and vectors.ndim == 2 and str(vectors.shape) == shape
    if not is_sound or facts.get(DIGEST) != digest(vectors):
        raise InputError(f"{path}: does not match its checksum; delete it to create it again")
    changed = [name for name, value in sources.items() if facts.get(name) != value]
    if changed:
        raise InputError(
            f"{path}: was built for a different {' and a different '.join(changed)}; delete it to create it again, "
            "or choose another file"
        )
    return vectors


def digest(vectors: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()


class Hit(NamedTuple):
    """Result of a search, with its cosine similarity to the query."""

    score: float
    number: int  # its index in the corpus, from 0
    text: str


class VectorSearch(ABC, Generic[I_contra]):
    """Mixin of predictors that encode inputs as vectors, and find those nearest to a query.

    Attributes:
        inputs: Reads the inputs of `encode` and the queries.
        items: Checks the items of a corpus, which are read only when they are encoded.
        width: The size of a vector.
    """

    inputs: InputKind[Any]
    items: InputKind[Any]
    width: int

    @abstractmethod
    def vectors(self, inputs: Iterable[Any], done: Done = lambda _: None) -> Iterator[Vectors]:
        """Encode inputs that `inputs` has read, in order and in bounded memory; yield the vector of each, (D,)."""

    @overload
    def encode(self, inputs: I_contra, done: Done = ...) -> Vectors: ...
    @overload
    def encode(self, inputs: Iterable[I_contra], done: Done = ...) -> Vectors: ...
    def encode(self, inputs: object, done: Done = lambda _: None) -> Vectors:
        """Encode an input as a float32 vector of length 1 and shape (D,), or several inputs as vectors (N, D).

        Args:
            inputs: One input, such as a string, or an iterable of any number of them.
            done: Called with 1 for each input when it is encoded.
        """
        vectors = self.inputs.one_or_all(lambda each: self.vectors(each, done), inputs)
        return stacked(vectors, self.width) if isinstance(vectors, list) else vectors

    __call__ = predict = encode

    def encode_lines(self, inputs: Iterable[I_contra], done: Done = lambda _: None) -> Iterator[Vectors]:
        """Encode any number of inputs, in order and in bounded memory; yield the vector of each, (D,)."""
        return self.vectors(self.inputs.each(inputs), done)

    @overload
    def search(
        self, queries: I_contra, corpus: Iterable[I_contra], k: int = 10, vectors: Vectors | None = None
    ) -> list[Hit]: ...
    @overload
    def search(
        self, queries: Iterable[I_contra], corpus: Iterable[I_contra], k: int = 10, vectors: Vectors | None = None
    ) -> list[list[Hit]]: ...
    def search(
        self, queries: object, corpus: Iterable[I_contra], k: int = 10, vectors: Vectors | None = None
    ) -> list[Hit] | list[list[Hit]]:
        """Find the items of a corpus nearest to a query, or to each of several, best first; ties keep the corpus order.

        Args:
            queries: One input, or an iterable of inputs, as for `encode`.
            corpus: The inputs to search. The `text` of a hit is the text itself or, for an image, its path if known.
            k: The maximum number of hits for each query.
            vectors: The vectors of `corpus`, if already computed with `encode`.
        """
        items = corpus if isinstance(corpus, list) else list(self.items.each(corpus))
        index = self.encode(items) if vectors is None else vectors
        if k < 1:
            raise InputError(f"k = {k}: must be at least 1")
        if len(index) != len(items):
            raise InputError(
                f"{counted(len(items), 'texts')} but {counted(len(index), 'vectors')}; give the vectors of these texts"
            )

        def answers(each: Iterator[Any]) -> Iterator[list[Hit]]:
            scores, numbers = nearest(stacked(self.vectors(each), self.width), index, k)
            for row in zip(scores.tolist(), numbers.tolist(), strict=True):
                yield [Hit(score, number, self.name_of(items[number])) for score, number in zip(*row, strict=True)]

        return self.inputs.one_or_all(answers, queries)

    def name_of(self, item: Any) -> str:
        """Return the `text` of a hit."""
        return item


class Retriever(VectorSearch[str], Predictor["SentenceEncoder", Vectors]):
    """Retriever for semantic search: a sentence encoder with its tokenizer. A vector depends only on its own text."""

    tokenizer: Tokenizer
    inputs = items = TEXTS

    def __init__(self, model: "SentenceEncoder", tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.reader = BatchedModel(model, tokenizer, data.max_length)
        self.width = model.size

    def vectors(self, inputs: Iterable[str], done: Done = lambda _: None) -> Iterator[Vectors]:
        for vector in self.reader.read(map(Text, inputs)):
            done(1)
            yield np.asarray(vector)

    def model_inputs(self, value: str, second: str | None) -> ModelInputs:
        return row_inputs(self.model, self.reader.encode(Text(value, second)))


def warn_of_mean_vectors(path: Path, task: str) -> None:
    """Warn, unless the task is ranking, that the vectors of the model are the means of its hidden states."""
    if task != "ranking":
        LOG.warning(
            '%s was trained for the task "%s", not for sentence vectors, so the means of its hidden states are used; '
            'fine-tune it for task = "ranking" to get better vectors',
            path,
            task,
        )


def stacked(vectors: Iterable[Vectors], width: int) -> Vectors:
    """Stack any number of vectors, each (D,), into one array (N, D)."""
    return np.array(list(vectors), np.float32).reshape(-1, width)


def nearest(queries: Vectors, vectors: Vectors, k: int) -> tuple[Vectors, NDArray[np.int64]]:
    """Find the k vectors (N, D) with the largest dot products for each query (Q, D).

    Returns:
        The scores in descending order, and the indices of their vectors, the lower one first for equal scores. Both
        have the shape (Q, min(k, N)).
    """
    scores, indices = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    # In blocks, because the scores of all vectors at once, (Q, N), would take too much memory.
    for start in range(0, len(vectors), BLOCK):
        block = queries @ vectors[start : start + BLOCK].T
        numbers = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        # The best so far come first, so that the stable sort keeps the lower index first for equal scores.
        scores, indices = np.concatenate([scores, block], axis=1), np.concatenate([indices, numbers], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, indices = np.take_along_axis(scores, order, axis=1), np.take_along_axis(indices, order, axis=1)
    return scores, indices
