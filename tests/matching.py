"""Made pairs for tasks that learn in a moment: each word belongs to another one."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from heedful.config.load import recipe_from_dict
from heedful.config.schema import Recipe
from heedful.training.loop import train

SETTINGS: dict[str, Any] = {
    "data": {"train": [{"source": "train.tsv"}], "valid": {"source": "valid.tsv"}, "max_length": 11},
    "tokenizer": {"kind": "word", "vocab_size": 97, "byte_fallback": False, "pretokenized": True},
    "model": {
        "d_model": 32,
        "d_ff": 37,
        "heads": 2,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "norm": "pre",
        "dropout": 0.0,
    },
    "optimizer": {"lr": 0.01, "schedule": "constant", "warmup": 0},
    "train": {
        "max_updates": 61,
        "precision": "float32",
        "batch_tokens": 251,
        "validate_every": 1000,
        "save_every": 1000,
        "device": "cpu",
        "threads": 1,
        "label_smoothing": 0.0,
    },
}


def recipe(root: Path, **tables: Any) -> Recipe:
    """The settings with some of their keys changed."""
    values = deepcopy(SETTINGS)
    for table, changes in tables.items():
        values[table] = {**values.get(table, {}), **changes} if isinstance(changes, dict) else changes
    values["data"]["root"] = str(root)
    return recipe_from_dict(values, "test")


def write_rows(path: Path, rows: list[tuple[str, str]]) -> None:
    """A table of two columns."""
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")


def matching(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts of one, two or three words qN among others, with the words aN in the same order."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 13, rng.integers(1, 4)) for _ in range(count)]
    return [(" ".join(f"q{n}" for n in row), " ".join(f"a{n}" for n in row)) for row in rows]


def write_matching(folder: Path) -> None:
    """A training, a validation and a test set of such texts."""
    for seed, (name, count) in enumerate({"train": 601, "valid": 29, "test": 31}.items()):
        write_rows(folder / f"{name}.tsv", matching(count, seed))


def learned(settings: Recipe, folder: Path) -> dict[str, float]:
    """The scores of the model that a recipe makes in a folder."""
    train(settings, folder, Console(quiet=True))
    return json.loads((folder / "result.json").read_text())
