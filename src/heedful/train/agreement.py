"""Agreement of the processes of a training: they begin with the same weights, data and recipe."""

import json
import zlib

import torch

from heedful.config.load import recipe_to_dict
from heedful.errors import RunError
from heedful.models import weights
from heedful.train.trainer import Trainer

MAY_DIFFER = {"device", "threads"}  # settings of [train] that are each machine's own


def check_agreement(trainer: Trainer) -> None:
    """Check that all processes of a training begin with the same weights, data and recipe.

    Raises:
        RunError: they differ; the message names the first process that does, and in what.
    """
    first, *others = trainer.reducer.gather(checksums(trainer))
    for rank, found in enumerate(others, start=1):
        for what, value in found.items():
            if value != first[what]:
                raise RunError(
                    f"process {rank} has other {what} than process 0: all machines need the same version of heedful, "
                    "the same recipe and the same files"
                )


def checksums(trainer: Trainer) -> dict[str, str | int]:
    """Checksums of what the processes of a training must agree on."""
    recipe = recipe_to_dict(trainer.recipe)
    recipe["train"] = {key: value for key, value in recipe["train"].items() if key not in MAY_DIFFER}
    del recipe["data"]["root"]
    crc = 0
    for tensor in weights(trainer.model).values():
        crc = zlib.crc32(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, crc)
    return {"weights": crc, "data": trainer.task.digest, "settings": json.dumps(recipe, sort_keys=True)}
