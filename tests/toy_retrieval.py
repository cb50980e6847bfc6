"""Pictures of a coloured square at one of six places, with a sentence about each: found in a moment's training."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from toy_media import png

TASK = "image_text_retrieval"
COLOURS = {"red": 0, "green": 1, "blue": 2}
PLACES = {
    f"{row} {column}": (7 * i, 7 * j) for i, row in enumerate(("top", "bottom")) for j, column in enumerate("abc")
}
TEXTS = [f"a {colour} square at the {place}" for colour in COLOURS for place in PLACES]  # 18
COUNTS = {"train": 7 * len(TEXTS), "valid": len(TEXTS) + 5}  # images


def recipe(folder: Path, **tables: Any) -> Recipe:
    """The recipe over the tables that `write_tables` wrote, with some keys changed."""
    corpus = {"source_field": "file", "target_field": "text"}
    values: dict[str, Any] = {
        "data": {
            "train": [{"source": "train.jsonl", **corpus}],
            "valid": {"source": "valid.jsonl", **corpus},
            "test": {"source": "valid.jsonl", **corpus},
            "max_length": 11,
        },
        "tokenizer": {"kind": "word", "vocab_size": 37, "byte_fallback": False},
        "image": {"size": [14, 21], "patch": 7, "shift": 1},
        "model": {
            "d_model": 26,
            "d_ff": 37,
            "heads": 2,
            "encoder_layers": 1,
            "positions": "learned",
            "max_positions": 7,
            "dropout": 0.1,
            "text_d_model": 22,
            "text_d_ff": 31,
            "text_heads": 2,
            "text_layers": 2,
            "text_max_positions": 13,
            "projection": 17,
        },
        "optimizer": {"name": "adamw", "lr": 0.004, "schedule": "constant", "warmup": 3},
        "train": {
            "max_updates": 11,
            "precision": "float32",
            "batch_tokens": 251,
            "validate_every": 4,
            "save_every": 3,
            "threads": 1,
            "device": "cpu",
        },
    }
    for table, own in tables.items():
        values[table] = values.get(table, {}) | own
    return make_recipe({"task": TASK, **values}, data_root=folder)


def drawn(text: str, seed: int) -> np.ndarray:
    """Pixels (14 21 3) of what a sentence says, on grey noise."""
    pixels = np.random.default_rng(seed).integers(90, size=(14, 21, 3), dtype=np.uint8)
    _, colour, _, _, _, *place = text.split()
    row, column = PLACES[" ".join(place)]
    pixels[row : row + 7, column : column + 7, COLOURS[colour]] = 255
    return pixels


def write_tables(folder: Path) -> Path:
    """Pictures below a folder, and tables of training and validation that name them with their sentences.

    Training has each sentence seven times, and validation five of them twice.
    """
    (folder / "files").mkdir(parents=True)
    for seed, (part, count) in enumerate(COUNTS.items()):
        lines = []
        for number in range(count):
            text, name = TEXTS[number % len(TEXTS)], f"files/{part}-{number:03}.png"
            (folder / name).write_bytes(png(drawn(text, seed * 1009 + number)))
            lines.append(json.dumps({"file": name, "text": text}) + "\n")
        (folder / f"{part}.jsonl").write_text("".join(lines))
    return folder
