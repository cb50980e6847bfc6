"""A toy task: to write words in reverse."""

import hashlib
import random
from copy import deepcopy
from pathlib import Path

from heedful.config.load import recipe_from_dict
from heedful.config.schema import Recipe
from heedful.train.log_file import LOG
from interrupted import train

SETTINGS = {
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


def write_pairs(folder: Path, name: str, count: int, seed: int) -> None:
    """Sentences of words, and the same words in reverse."""
    rng = random.Random(seed)
    rows = [rng.choices(WORDS, k=rng.randint(1, 7)) for _ in range(count)]
    folder.joinpath(f"{name}.src").write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
    folder.joinpath(f"{name}.tgt").write_text("".join(" ".join(row[::-1]) + "\n" for row in rows), encoding="utf-8")


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
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    train(recipe(folder), folder / "run")
    return folder / "run"
