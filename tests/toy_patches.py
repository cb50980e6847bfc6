"""Drawn images of stripes, whose hidden parts can be told from the rest, and recipes for them: a moment's work."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from heedful.config.load import make_recipe
from heedful.config.schema import Recipe

Values = dict[str, Any]

SIDES = ("rows", "columns", "slopes")  # the direction of the stripes
SHAPE = (15, 25)
_COMMON: Values = {
    "data": {"train": [{"source": "train"}], "valid": {"source": "valid"}},
    "image": {"size": [15, 25], "patch": 5, "channels": 1},
    "model": {"d_model": 16, "d_ff": 23, "heads": 2, "encoder_layers": 1, "dropout": 0.1, "norm": "pre"},
    "optimizer": {"name": "adamw", "lr": 0.01, "schedule": "constant", "warmup": 3},
    "train": {
        "max_updates": 11,
        "precision": "float32",
        "batch_tokens": 113,
        "validate_every": 4,
        "save_every": 3,
        "log_every": 2,
        "threads": 1,
        "device": "cpu",
    },
}


def recipe(task: str, folder: Path, **tables: Values) -> Recipe:
    """A recipe over the images that `write_pictures` wrote, with some keys changed."""
    values = deepcopy(_COMMON)
    for table, own in tables.items():
        values.setdefault(table, {}).update(own)
    values["data"]["root"] = str(folder)
    return make_recipe({"task": task, **values})


def write_pictures(folder: Path, train: int = 13, valid: int = 5) -> Path:
    """Pictures of each class in folders of their own, below train and valid."""
    for seed, (part, count) in enumerate((("train", train), ("valid", valid)), start=1):
        for label in SIDES:
            (folder / part / label).mkdir(parents=True)
            for number in range(count):
                picture = Image.fromarray(drawn(label, seed * 1009 + number))
                picture.save(folder / part / label / f"{number:02}.png")
    return folder


def drawn(label: str, seed: int, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    """Pixels (H W) of stripes in one direction, at a random place, with some noise."""
    chance = np.random.default_rng(seed)
    rows, columns = np.indices(shape)
    along = {"rows": rows, "columns": columns, "slopes": rows + columns}[label]
    waves = np.sin(2 * np.pi * (along / 5 + chance.random()))
    return (127 + 100 * waves + chance.normal(0, 7, shape)).clip(0, 255).astype(np.uint8)
