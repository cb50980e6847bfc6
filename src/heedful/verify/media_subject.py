"""Subjects of verification that read pictures, sounds or videos: random pixels and frames take the place of token ids.

R examples, N rows of pixels or frames, H rows and Q columns of patches, F pixels of a patch.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.config.schema import Recipe
from heedful.data.media.hidden_patches import hidden_patches
from heedful.losses import Loss, squared_error
from heedful.models.masked_patches import normalised
from heedful.verify.subject import Example, PairSubject, RowSubject, padded

NOISE = 5.0  # what stands in the padding, and must not matter


def draw_input(recipe: Recipe, length: int, random: torch.Generator) -> Float[Tensor, "N ..."]:
    """Draw a sound of so many frames, a picture of so many rows of patches, or a video of so many tubelets in time.

    A picture or video has at most those of the recipe.
    """
    image, video = recipe.image, recipe.video
    rows, tubelets = (1 + (length - 1) % most for most in (image.grid[0], video.frames // video.tubelet))
    shapes = {
        "audio": (length, recipe.audio.width),
        "image": (rows * image.patch, image.size[1], image.channels),
        "video": (tubelets * video.tubelet, *image.size, image.channels),
    }
    return torch.randn(shapes[recipe.data.modality], generator=random)


def padded_inputs(rows: Sequence[Float[Tensor, "N ..."]]) -> tuple[Float[Tensor, "R N ..."], Bool[Tensor, "R N"]]:
    """Pad inputs at their end to the longest of them; return them with the padding mask, True for real rows."""
    lengths = torch.tensor([len(row) for row in rows])
    inputs = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=NOISE)
    return inputs, torch.arange(inputs.size(1)) < lengths[:, None]


class MediaSubject(RowSubject):
    """A classifier of pictures, of sounds or of videos."""

    sides = ("right",)

    def __init__(self, model: Any, recipe: Recipe, vocabulary: int, seed: int = 0) -> None:
        self.recipe = recipe
        super().__init__(model, vocabulary, seed)

    def example(self, source: int, target: int) -> Example:
        """Draw a picture, a sound or a video."""
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


class DualSubject(MediaSubject):
    """A dual encoder: it reads pictures and texts, which are an example together."""

    def example(self, source: int, target: int) -> Example:
        """Draw a picture and a text."""
        return draw_input(self.recipe, source, self.random), self.ids(source + target)

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        """Compute the vectors of the picture and of the text of each example, times the scale of the similarities."""
        pictures = model.pictures(*padded_inputs([rows for rows, _ in examples]))
        texts = model.texts(*padded([text for _, text in examples], side))
        return list(model.scale * torch.stack([pictures, texts], dim=1))


class PatchSubject(MediaSubject):
    """A model of masked patches: it reads pictures with hidden patches, whose pixels it predicts."""

    def example(self, source: int, target: int) -> Example:
        """Draw a picture, and which of its patches are hidden."""
        pixels = draw_input(self.recipe, source + target, self.random)
        grid = len(pixels) // self.recipe.image.patch, self.recipe.image.grid[1]
        hidden = hidden_patches(grid, self.recipe.masking.rate, self.random.initial_seed(), 0, len(pixels))
        return pixels, torch.from_numpy(hidden)

    def predicted(self, model: Any, examples: Sequence[Example]) -> tuple[Float[Tensor, "R H Q F"], Tensor, Tensor]:
        """Predict the pixels of all patches in one batch; return them with the padded inputs and hidden patches."""
        inputs, padding_mask = padded_inputs([pixels for pixels, _ in examples])
        hidden = torch.nn.utils.rnn.pad_sequence([hidden for _, hidden in examples], batch_first=True)
        return model(inputs, padding_mask, hidden), inputs, hidden

    def outputs(self, model: Any, examples: Sequence[Example], side: str = "right") -> list[Tensor]:
        """Compute the pixels of every patch of each picture; there is padding at the end only."""
        del side
        found, _, _ = self.predicted(model, examples)
        return [patches[: len(hidden)] for patches, (_, hidden) in zip(found, examples, strict=True)]

    def loss(self, model: Any, examples: Sequence[Example]) -> Loss:
        """Compute the squared error of the pixels of hidden patches."""
        found, inputs, hidden = self.predicted(model, examples)
        return squared_error(found[hidden], normalised(inputs, self.recipe.image.patch)[hidden])
