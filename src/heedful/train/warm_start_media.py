"""Warm start of models of pictures, sound or videos: the settings of their input layer, and pictures of another size.

R rows and Q columns of patches, N learned positions, D model.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heedful.config.families import FAMILIES
from heedful.config.modalities import ImageConfig
from heedful.config.schema import Recipe
from heedful.errors import InputError

PICTURE = ("channels", "patch", "stem", "class_token", "positions", "mean", "std")
LEARNED: dict[str, dict[str, tuple[str, ...]]] = {  # what an input layer was trained with; a recipe decides the rest
    "text": {},
    "image": {"image": PICTURE},
    "audio": {"audio": ("rate", "features", "window", "hop", "mels", "stem")},
    # frames and their size as well, since positions of videos are not interpolated
    "video": {"image": ("size", *PICTURE), "video": ("frames", "tubelet", "positions")},
}
READING = {"image": {"image": ("resize", "resample")}, "audio": {"audio": ("pad_seconds",)}}  # what a recipe decides
SPEECH = ("languages", "suppress", "suppress_first")  # what goes with the vocabulary of a Whisper
READS = {"text": "text", "image": "pictures", "audio": "sound", "video": "videos"}
TABLES = ("backbone.stack.positions.table.weight", "encoder.positions.table.weight")  # a row for each place in a stack
GRIDS = ("backbone.embedding.positions.", "source_embedding.positions.")  # a table for rows, and one for columns


def check_modality(start: Recipe, recipe: Recipe, place: str) -> None:
    """Check that a start model reads what the recipe's model reads; `place` names it in the message.

    Raises:
        InputError: one reads pictures, say, and the other text.
    """
    there, here = start.data.modality, recipe.data.modality
    if there != here:
        raise InputError(
            f'{place}: this model reads {READS[there]}, and one for the task "{recipe.task}" reads {READS[here]}; '
            "start from one of its own kind, or leave train.start out"
        )


def with_input_of(start: Recipe, recipe: Recipe) -> Recipe:
    """Give a recipe the settings that the input layer of a start model was trained with, if it reads the same.

    A model that goes on to learn texts without time stamps, which are all that a recipe can name, writes none.
    """
    if start.data.modality != recipe.data.modality:
        return recipe
    learned = {
        table: {key: getattr(getattr(start, table), key) for key in keys}
        for table, keys in LEARNED[recipe.data.modality].items()
    }
    same = recipe.train.vocabulary in (None, "keep")
    if recipe.data.modality == "audio" and FAMILIES[recipe.model.family].pairs and same:
        learned["transcribe"] = {key: getattr(start.transcribe, key) for key in SPEECH} | {"timestamps": "never"}
    return replace(recipe, **{table: replace(getattr(recipe, table), **values) for table, values in learned.items()})


def reading_note(start: Recipe, recipe: Recipe) -> str | None:
    """Say which settings read files otherwise than those that a start model learned from; None if none do.

    They are the recipe's, but the model has learned other inputs, and formats of other toolkits have a fixed way.
    """
    if start.data.modality != recipe.data.modality:
        return None
    other = [
        f"{table}.{key} = {json.dumps(there)}"
        for table, keys in READING.get(recipe.data.modality, {}).items()
        for key in keys
        if (there := getattr(getattr(start, table), key)) != getattr(getattr(recipe, table), key)
    ]
    return (
        f"the model that training starts from has learned with {', '.join(other)}, which this recipe does not set: set "
        "it for inputs as it knows them, and to convert the model back to the format in which it came"
        if other
        else None
    )


def more_positions(start: Recipe, recipe: Recipe) -> dict[str, int]:
    """Return the keys of [model] that change where pictures have more patches than positions were learned for.

    Where a model of pictures becomes an encoder, the text that the decoder writes may need more positions, too: there
    are as many as the recipe says.
    """
    learned = start.model.learned_positions
    if learned is None or recipe.data.modality != "image" or start.data.modality != "image":
        return {}
    becomes_half = FAMILIES[recipe.model.family].pairs and not FAMILIES[start.model.family].pairs
    return {"max_positions": max(learned, recipe.image.tokens, recipe.model.max_positions if becomes_half else 0)}


def check_seconds(recipe: Recipe, place: str) -> None:
    """Check that the positions that a start model has learned suffice for the longest sound; `place` names the model.

    Raises:
        InputError: they do not.
    """
    learned, audio = recipe.model.learned_positions, recipe.audio
    if recipe.data.modality == "audio" and learned is not None and audio.longest > learned:
        longest = learned * audio.stride * audio.hop / audio.rate
        raise InputError(
            f"{place} has learned {learned} positions, and the recipe reads sound of {audio.longest}: set "
            f"audio.max_seconds = {longest:g}, or start from a model that was trained with longer sound"
        )


def resized_positions(start: Recipe, recipe: Recipe, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Fit the learned positions of a start model to the recipe: interpolated for pictures of another size.

    Args:
        start: the recipe of the start model.
        recipe: the recipe of the new model.
        values: weights of the start model by name.

    Returns:
        The weights that are changed, by name; none if both have the same grid of patches and as many positions.
    """
    size = recipe.model.learned_positions
    same = start.image.grid == recipe.image.grid and start.model.learned_positions == size
    if {start.data.modality, recipe.data.modality} != {"image"} or same:
        return {}
    tables = {name: values[name] for name in TABLES if name in values and size is not None}
    changed = {name: resized_table(tables[name], start.image, recipe.image, size or 0) for name in tables}
    for prefix in GRIDS:
        for part, count in zip(("rows", "columns"), recipe.image.grid, strict=True):
            if (name := prefix + part) in values:
                line = values[name].T[None]
                changed[name] = F.interpolate(line, count, mode="linear", align_corners=False)[0].T.contiguous()
    return changed


def resized_table(
    table: Float[Tensor, "N D"], before: ImageConfig, after: ImageConfig, size: int
) -> Float[Tensor, "N2 D"]:
    """Interpolate a table of learned positions bicubically on its grid (Dosovitskiy et al. 2021, section 3.2).

    The position of the class token stays. Rows behind those of a picture, which nothing reads, become zeros.
    """
    first = int(before.class_token)
    found = table.new_zeros(size, table.size(1))
    if before.grid == after.grid:
        found[: after.tokens] = table[: after.tokens]
    else:
        grid = table[first : before.tokens].unflatten(0, before.grid).permute(2, 0, 1)[None]
        new = F.interpolate(grid, after.grid, mode="bicubic", align_corners=False)[0]
        found[:first], found[first : after.tokens] = table[:first], new.permute(1, 2, 0).flatten(0, 1)
    return found


def told(start: Recipe, recipe: Recipe) -> str:
    """Say in a sentence which positions are interpolated; nothing if pictures have the size that was learned."""
    if start.image.grid == recipe.image.grid:
        return ""
    (rows, columns), (more, wider) = start.image.grid, recipe.image.grid
    return f"learned positions of {rows} x {columns} patches are interpolated to {more} x {wider}"
