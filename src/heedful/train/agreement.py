"""Agreement of the processes of a training: they begin with the same recipe, data and weights."""

import zlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from heedful.config.keys import is_per_machine
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.errors import RunError
from heedful.models import weights
from heedful.parallel import Reducer


def check_agreement(reducer: Reducer, own: Mapping[str, Any]) -> None:
    """Check that all processes of a training have the same JSON values.

    Raises:
        RunError: they differ; the message names the first process that does, and in what.
    """
    first, *others = reducer.gather(dict(own))
    for rank, found in enumerate(others, start=1):
        other = [name for name in first.keys() | found.keys() if found.get(name) != first.get(name)]
        if other:
            raise RunError(
                f"process {rank} has other {', '.join(sorted(other))} than process 0: all machines need the same "
                "version of heedful, the same recipe and the same files"
            )


def settings(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe by their dotted keys, without those that each machine has for itself.

    Paths below the folder of the data are relative to it.
    """
    options = type(recipe.model)
    values = {key: value for key, value in dotted(recipe_to_dict(recipe)) if not is_per_machine(key, options)}
    root = recipe.data.root
    return {key: value.removeprefix(root) if isinstance(value, str) else value for key, value in values.items()}


def checksum(model: nn.Module) -> int:
    """Compute a checksum (CRC-32) of all weights of a model."""
    crc = 0
    for tensor in weights(model).values():
        crc = zlib.crc32(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, crc)
    return crc
