"""Subjects of verification that read pictures or sounds: random pixels and frames take the place of token ids.

R examples, N rows of pixels or frames.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.config.schema import Recipe
from heedful.verify.subject import Example, PairSubject, RowSubject

NOISE = 5.0  # what stands in the padding, and must not matter


def draw_input(recipe: Recipe, length: int, random: torch.Generator) -> Float[Tensor, "N ..."]:
    """Draw the rows of a sound of so many frames; or of a picture of so many rows of patches, at most its height."""
    if recipe.data.modality == "audio":
        return torch.randn(length, recipe.audio.width, generator=random)
    image = recipe.image
    rows = 1 + (length - 1) % image.grid[0]
    return torch.randn(rows * image.patch, image.size[1], image.channels, generator=random)


def padded_inputs(rows: Sequence[Float[Tensor, "N ..."]]) -> tuple[Float[Tensor, "R N ..."], Bool[Tensor, "R N"]]:
    """Pad inputs at their end to the longest of them; return them with the padding mask, True for real rows."""
    lengths = torch.tensor([len(row) for row in rows])
    inputs = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=NOISE)
    return inputs, torch.arange(inputs.size(1)) < lengths[:, None]


class MediaSubject(RowSubject):
    """A classifier of pictures or of sounds."""

    sides = ("right",)

    def __init__(self, model: Any, recipe: Recipe, vocabulary: int, seed: int = 0) -> None:
        self.recipe = recipe
        super().__init__(model, vocabulary, seed)

    def example(self, source: int, target: int) -> Example:
        """Draw a picture or a sound."""
        return (draw_input(self.recipe, source + target, self.random),)

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        """Compute the logits of the classes of each example; there is padding at the end only."""
        del side
        return list(model(*padded_inputs([rows for (rows,) in examples])))


class MediaPairSubject(PairSubject):
    """An encoder-decoder that reads a picture or a sound and writes a text."""

    def __init__(self, model: Any, recipe: Recipe, vocabulary: int, seed: int = 0) -> None:
        self.recipe = recipe
        super().__init__(model, vocabulary, seed)

    def source(self, length: int) -> Tensor:
        """Draw a picture or a sound."""
        return draw_input(self.recipe, length, self.random)

    def sources(self, examples: Sequence[Example], side: str = "right") -> tuple[Tensor, Bool[Tensor, "R N"]]:
        """Pad the inputs of examples, which have padding at their end only; return them with their padding mask."""
        del side
        return padded_inputs([source for source, _ in examples])
