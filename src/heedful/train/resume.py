"""Resuming of runs: checks that a recipe changes nothing that the rest of a run computes."""

from heedful.checkpoint import Checkpoint
from heedful.config.families import FAMILIES
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.data.digest import data_digest
from heedful.errors import InputError

FREE = {  # keys, or tables of keys, that a resumed run may change
    "name",
    "data.root",  # the digest of the data itself is compared instead
    "data.test",
    "decode.beam",  # validation decodes greedily, so that settings of beam search and its batch size are free
    "decode.penalty",
    "decode.alpha",
    "decode.n_best",
    "decode.patience",
    "decode.batch_tokens",
    "generate",
    "parallel",
    "train.max_updates",
    "train.max_epochs",
    "train.max_minutes",
    "train.patience",
    "train.save_minutes",
    "train.keep_last",
    "train.log_every",
    "train.device",
    "train.threads",
    "train.activation_checkpointing",
    "train.tensorboard",
}
TIMED = {"cosine", "linear"}  # schedules that depend on max_updates


def check_same_run(recipe: Recipe, saved: Checkpoint) -> None:
    """Check that a recipe and its data match the run of a checkpoint, so that the run can resume.

    Raises:
        InputError: something differs that would change the rest of the run; all such settings are listed.
    """
    free = free_keys(recipe)
    now, then = dict(dotted(recipe_to_dict(recipe))), dict(dotted(recipe_to_dict(saved.recipe)))
    changed = [
        f"{key} is {now.get(key)!r}, the run was begun with {then.get(key)!r}"
        for key in sorted(now.keys() | then.keys())
        if now.get(key) != then.get(key) and not any(key == name or key.startswith(name + ".") for name in free)
    ]
    if changed:
        raise InputError(
            "the run cannot go on with other settings: " + "; ".join(changed) + ". "
            "Use the old values, or begin another run with another --out"
        )
    if data_digest(recipe) != saved.state["data"]:
        raise InputError(
            "the run cannot go on: its training or validation text has changed since it was begun. "
            "Restore the files, or begin another run with another --out"
        )


def free_keys(recipe: Recipe) -> set[str]:
    """List the recipe keys, or tables of keys, that may change when a run is resumed: no result depends on them."""
    timed = {"train.max_updates"} if recipe.optimizer.schedule in TIMED else set()
    decodes = FAMILIES[recipe.model.family].pairs and recipe.train.validate_decoding and recipe.data.valid
    automatic = {"train.precision"} if recipe.train.precision == "auto" else set()  # the run's own precision is taken
    return FREE - timed | automatic if decodes else FREE - timed | automatic | {"decode"}
