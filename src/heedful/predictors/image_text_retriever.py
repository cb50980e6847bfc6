"""Search among images and texts, which a dual encoder maps to vectors in a shared space."""

from collections.abc import Iterable, Iterator
from itertools import islice
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from heedful.architectures.dual_encoder.model import DualEncoder
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.predictors.media_reader import SINGLE, Input, MediaReader
from heedful.predictors.predictor import Done, InputKind, Predictor, described
from heedful.predictors.retriever import Vectors, VectorSearch
from heedful.predictors.text_predictor import BatchedModel, Text
from heedful.text.tokenizer import Tokenizer

WINDOW = 256  # inputs that are read at a time
GIVE = "a string, a path, bytes, an open file, pixels or a Pillow image"


def as_input(value: object) -> Input:
    if not isinstance(value, SINGLE):
        raise InputError(f"{described(value)} is neither a text nor an image; give {GIVE}")
    return cast("Input", value)


class ImageTextRetriever(VectorSearch[Input], Predictor[DualEncoder, Vectors]):
    """Retriever of images and texts: a dual encoder with its tokenizer. A vector depends only on its own input.

    A string is a text. An image is given as a `Path`, as bytes, as an open file, as an array of 8-bit pixels (H W C),
    or as a Pillow image.
    """

    items = InputKind("text or image", SINGLE, as_input, GIVE)

    def __init__(self, model: DualEncoder, tokenizer: Tokenizer, recipe: Recipe) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.images = MediaReader(model, recipe)
        self.texts = BatchedModel(model, tokenizer, recipe.data.max_length)
        self.inputs = InputKind("text or image", SINGLE, self.read, GIVE)
        self.width = model.size

    def read(self, value: object) -> str | NDArray[np.uint8]:
        """Return a text unchanged; decode an image."""
        checked = as_input(value)
        return checked if isinstance(checked, str) else self.images.decoded(checked)

    def vectors(self, inputs: Iterable[Any], done: Done = lambda _: None) -> Iterator[Vectors]:
        inputs = iter(inputs)
        while window := list(islice(inputs, WINDOW)):
            texts = [self.texts.encode(Text(one)) for one in window if isinstance(one, str)]
            images = [one for one in window if not isinstance(one, str)]
            # Each kind has its own batches; the results are merged in the order of the inputs.
            of_texts = iter(self.texts.read_rows(texts, lambda ids, mask, _: self.model.texts(ids, mask)))
            of_images = self.images.run(images, lambda *batch: self.model.pictures(*batch).cpu())
            for one in window:
                yield next(of_texts if isinstance(one, str) else of_images).numpy()
                done(1)

    def name_of(self, item: Any) -> str:
        return str(item) if isinstance(item, str | PathLike) else "image"
