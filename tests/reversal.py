"""A toy task: to write words in reverse."""

import hashlib
import random
from copy import deepcopy
from pathlib import Path

from toy import SETTINGS, WORDS

from heedful.config.load import recipe_from_dict
from heedful.config.schema import Recipe
from heedful.training.logger import LOG
from interrupted import train


def write_pairs(folder: Path, name: str, count: int, seed: int) -> None:
    """Sentences of words, and the same words in reverse."""
    rng = random.Random(seed)
    rows = [rng.choices(WORDS, k=rng.randint(1, 7)) for _ in range(count)]
    folder.joinpath(f"{name}.src").write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
    folder.joinpath(f"{name}.tgt").write_text("".join(" ".join(row[::-1]) + "\n" for row in rows), encoding="utf-8")


def write_texts(folder: Path) -> None:
    """A training and a validation set of that task."""
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)


def recipe(text: Path, **tables: dict) -> Recipe:
    """The recipe of that task over the pairs in a folder, with some keys changed."""
    values = deepcopy(SETTINGS)
    for table, changes in tables.items():
        values[table].update(changes)
    values["data"]["root"] = str(text)
    return recipe_from_dict(values, "test")


def fingerprint(folder: Path) -> tuple[str, bytes]:
    """What a run of the same recipe must have to the last bit: the weights of its final model, and its log."""
    weights = (folder / "model" / "model.safetensors").read_bytes()
    return hashlib.sha256(weights).hexdigest(), (folder / LOG).read_bytes()


def trained_run(folder: Path) -> Path:
    """A run of that task with its journal and its checkpoints."""
    write_texts(folder)
    train(recipe(folder), folder / "run")
    return folder / "run"
