"""Search among images and texts: both become vectors of one space, in which the nearest to a query are found."""

from collections.abc import Iterable, Iterator
from itertools import islice
from os import PathLike
from typing import cast, overload

import numpy as np
from numpy.typing import NDArray

from heedful.architectures.dual_encoder.model import DualEncoder
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.predictors.media_reader import SINGLE, Input, MediaReader
from heedful.predictors.predictor import Done, InputKind, Predictor, described
from heedful.predictors.retriever import Hit, Vectors, check_search, hits, stacked
from heedful.predictors.text_predictor import BatchedModel, Text
from heedful.text.tokenizer import Tokenizer

Read = str | NDArray[np.uint8]  # a text, or a decoded image

WINDOW = 256  # inputs that are read at a time
GIVE = "a string, a path, bytes, an open file, pixels or an image of Pillow"


class ImageTextRetriever(Predictor[DualEncoder, Vectors]):
    """Retriever of images and texts: a dual encoder with its tokenizer. A vector depends on its own input alone.

    A string is a text. An image is given as a `Path`, as bytes, as an open file, as an array of pixels, or as an
    image of Pillow.
    """

    def __init__(self, model: DualEncoder, tokenizer: Tokenizer, recipe: Recipe) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.pictures = MediaReader(model, recipe)
        self.texts = BatchedModel(model, tokenizer, recipe.data.max_length)
        self.inputs = InputKind("text or picture", SINGLE, self.read, GIVE)
        self.width = model.size

    @overload
    def encode(self, inputs: Input, done: Done = ...) -> Vectors: ...
    @overload
    def encode(self, inputs: Iterable[Input], done: Done = ...) -> Vectors: ...
    def encode(self, inputs: object, done: Done = lambda _: None) -> Vectors:
        """Encode a text or an image as a float32 vector of length 1 and shape (P,), or several as vectors (N, P).

        Args:
            inputs: a text, a string; an image, as the class says, where pixels are of 8 bits (H W C); or any number of
                both.
            done: called with 1 for each input, when it is encoded.
        """
        vectors = self.inputs.one_or_all(lambda each: self.vectors(each, done), inputs)
        return stacked(vectors, self.width) if isinstance(vectors, list) else vectors

    __call__ = predict = encode

    def encode_lines(self, texts: Iterable[Input], done: Done = lambda _: None) -> Iterator[Vectors]:
        """Encode any number of texts and images, in their order and in bounded memory; yield the vector of each."""
        return self.vectors(self.inputs.each(texts), done)

    @overload
    def search(
        self, queries: Input, corpus: Iterable[Input], k: int = 10, vectors: Vectors | None = None
    ) -> list[Hit]: ...
    @overload
    def search(
        self, queries: Iterable[Input], corpus: Iterable[Input], k: int = 10, vectors: Vectors | None = None
    ) -> list[list[Hit]]: ...
    def search(
        self, queries: object, corpus: Iterable[Input], k: int = 10, vectors: Vectors | None = None
    ) -> list[Hit] | list[list[Hit]]:
        """Find what is nearest to a query, or to each of several, best first; ties in the order of the corpus.

        Args:
            queries: texts or images, as for `encode`.
            corpus: texts or images to search. The `text` of a hit is the text itself, or the path of the image.
            k: the most inputs to find for each query.
            vectors: the vectors of `corpus`, if computed already with `encode`.
        """
        items = list(INPUTS.each(corpus))
        index = self.encode(items) if vectors is None else vectors
        check_search(items, index, k)
        names = [str(item) if isinstance(item, str | PathLike) else "picture" for item in items]

        def answers(each: Iterator[Read]) -> Iterator[list[Hit]]:
            return hits(stacked(self.vectors(each), self.width), names, index, k)

        return self.inputs.one_or_all(answers, queries)

    def read(self, value: object) -> Read:
        """Return a text as it is, and an image decoded."""
        checked = as_input(value)
        return checked if isinstance(checked, str) else self.pictures.decoded(checked)

    def vectors(self, inputs: Iterable[Read], done: Done = lambda _: None) -> Iterator[Vectors]:
        """Encode texts and decoded images, some at a time; yield the vector of each, in order."""
        inputs = iter(inputs)
        while window := list(islice(inputs, WINDOW)):
            texts = [self.texts.encode(Text(one)) for one in window if isinstance(one, str)]
            pictures = [one for one in window if not isinstance(one, str)]
            of_texts = iter(self.texts.read_rows(texts, lambda ids, mask, _: self.model.texts(ids, mask)))
            of_pictures = self.pictures.run(pictures, lambda *batch: self.model.pictures(*batch).cpu())
            for one in window:
                yield next(of_texts if isinstance(one, str) else of_pictures).numpy()
                done(1)


def as_input(value: object) -> Input:
    if not isinstance(value, SINGLE):
        raise InputError(f"{described(value)} is neither a text nor a picture; give {GIVE}")
    return cast("Input", value)


INPUTS = InputKind("text or picture", SINGLE, as_input, GIVE)
