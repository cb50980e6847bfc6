"""A toy task for the attacks: a tiny translator that writes words in reverse, and heedful as a user calls it."""

import hashlib
import os
import random
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

from heedful.config.load import recipe_from_dict, recipe_to_dict, to_toml
from heedful.config.schema import Recipe

SOURCE = Path(__file__).resolve().parents[1] / "src"
WORDS = [f"w{i}" for i in range(23)]
SETTINGS: dict[str, dict[str, Any]] = {
    "data": {
        "source_language": "en",
        "target_language": "en",
        "train": [{"source": "train.src", "target": "train.tgt"}],
        "valid": {"source": "valid.src", "target": "valid.tgt"},
        "filters": {"max_tokens": 61},
    },
    "tokenizer": {"kind": "word", "vocab_size": 29, "byte_fallback": False, "pretokenized": True},
    "model": {"d_model": 16, "d_ff": 23, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "optimizer": {"lr": 0.01, "schedule": "constant", "warmup": 5},
    "train": {
        "max_updates": 19,
        "batch_tokens": 61,
        "validate_every": 7,
        "save_every": 5,
        "log_every": 3,
        "average_last": 2,
        "precision": "float32",
        "threads": 1,
        "device": "cpu",
    },
    "decode": {"max_extra": 3},  # outputs of a model that has learned little are as long as they may be
}


def write_pairs(folder: Path, count: int = 101, seed: int = 1) -> None:
    """Write sentences of words, and the same words in reverse: `count` to train on, and 11 to validate."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for name, number in (("train", count), ("valid", 11)):
        rows = [rng.choices(WORDS, k=rng.randint(1, 7)) for _ in range(number)]
        for ending, lines in (("src", rows), ("tgt", [row[::-1] for row in rows])):
            text = "".join(" ".join(line) + "\n" for line in lines)
            folder.joinpath(f"{name}.{ending}").write_text(text, encoding="utf-8")


def recipe(folder: Path, **tables: dict[str, Any]) -> Recipe:
    """The recipe of that task over the pairs in a folder, with some keys of its tables changed."""
    values = deepcopy(SETTINGS)
    for table, changes in tables.items():
        values.setdefault(table, {}).update(changes)
    values["data"]["root"] = str(folder)
    return recipe_from_dict(values, "toy")


def write_recipe(folder: Path, **tables: dict[str, Any]) -> None:
    """Write that recipe to the folder of its pairs, for `heedful train FOLDER`."""
    folder.joinpath("config.toml").write_text(to_toml(recipe_to_dict(recipe(folder, **tables))), encoding="utf-8")


def command(*arguments: str) -> list[str]:
    """The command line `heedful ARGUMENTS`, run by this Python."""
    return [sys.executable, "-m", "heedful", *arguments]


def environment() -> dict[str, str]:
    """The environment of such a command: this one, in which heedful is the source beside this folder."""
    return os.environ | {"PYTHONPATH": str(SOURCE)}


def fingerprint(run: Path) -> tuple[str, bytes]:
    """What runs of a recipe must have to the last bit: the sha256 of their final weights, the bytes of their logs."""
    weights = (run / "model" / "model.safetensors").read_bytes()
    return hashlib.sha256(weights).hexdigest(), (run / "log.jsonl").read_bytes()
