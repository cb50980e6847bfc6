"""A toy run for the attacks: a tiny translator that learns to write words in reverse."""

import hashlib
import os
import random
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

from heedful.config.load import recipe_from_dict
from heedful.config.schema import Recipe

SOURCE = Path(__file__).parents[1] / "src"
SETTINGS: dict[str, Any] = {
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
}
WORDS = [f"w{i}" for i in range(23)]


def write_pairs(folder: Path, count: int = 101, seed: int = 1) -> None:
    """Sentences of words and the same words in reverse: `count` to learn from, and 11 to validate on."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    for name, number in (("train", count), ("valid", 11)):
        rows = [draw.choices(WORDS, k=draw.randint(1, 7)) for _ in range(number)]
        for ending, step in (("src", 1), ("tgt", -1)):
            text = "".join(" ".join(row[::step]) + "\n" for row in rows)
            folder.joinpath(f"{name}.{ending}").write_text(text, encoding="utf-8")


def recipe(folder: Path, **tables: dict[str, Any]) -> Recipe:
    """The recipe over the pairs in a folder, with some keys of its tables changed."""
    values = deepcopy(SETTINGS)
    for table, changes in tables.items():
        values.setdefault(table, {}).update(changes)
    values["data"]["root"] = str(folder)
    return recipe_from_dict(values, "toy")


def command(*arguments: str) -> list[str]:
    """A command line of heedful."""
    return [sys.executable, "-m", "heedful", *arguments]


def environment() -> dict[str, str]:
    """The environment of such a command, so that it runs this source."""
    return os.environ | {"PYTHONPATH": str(SOURCE)}


def fingerprint(run: Path) -> tuple[str, bytes]:
    """What a run must have to the last bit: the SHA-256 of its final weights, and the bytes of its log."""
    weights = (run / "model" / "model.safetensors").read_bytes()
    return hashlib.sha256(weights).hexdigest(), (run / "log.jsonl").read_bytes()
