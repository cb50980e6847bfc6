"""Pictures and audio files with a text about each, in a table, and recipes for them: a moment's work."""

import json
from pathlib import Path
from typing import Any

from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from toy_media import PITCHES, RATE, SIDES, drawn, png, tone, wav

TEXTS = {
    "left": "the left side is bright",
    "right": "bright on the right",
    "top": "the sky is bright",
    "high": "a high tone",
    "low": "this tone is a low one",
}
COUNTS = {"train": 13, "valid": 3}  # files with each text
SEEDS = {"train": 1, "valid": 2}  # no file of one is in the other

_OWN: dict[str, dict[str, Any]] = {
    "captioning": {"image": {"size": [14, 21], "patch": 7, "shift": 2}},
    "speech_recognition": {
        "audio": {"rate": RATE, "window": 50, "hop": 20, "mels": 7, "max_seconds": 1.0, "speed": 0.1, "time_masks": 1}
    },
}
TASKS = tuple(_OWN)


def recipe(task: str, folder: Path, **tables: Any) -> Recipe:
    """The recipe of a task over the table that `write_table` wrote, with some keys changed."""
    corpus = {"source_field": "file", "target_field": "text"}
    values: dict[str, Any] = {
        "data": {
            "train": [{"source": "train.jsonl", **corpus}],
            "valid": {"source": "valid.jsonl", **corpus},
            "test": {"source": "valid.jsonl", **corpus},
            "filters": {"max_tokens": 31},
        },
        "tokenizer": {"kind": "word", "vocab_size": 31, "byte_fallback": False},
        "model": {"d_model": 26, "d_ff": 37, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.1},
        "optimizer": {"name": "adamw", "lr": 0.01, "schedule": "constant", "warmup": 3},
        "train": {
            "max_updates": 11,
            "precision": "float32",
            "batch_tokens": 131,
            "validate_every": 4,
            "save_every": 3,
            "label_smoothing": 0.0,
            "threads": 1,
            "device": "cpu",
        },
        "decode": {"beam": 3, "max_extra": 11, "patience": 0.0},
    }
    for changes in (_OWN[task], tables):
        for table, own in changes.items():
            values.setdefault(table, {}).update(own)
    return make_recipe({"task": task, **values}, data_root=folder)


def write_table(task: str, folder: Path) -> Path:
    """Files below a folder, and tables of training and validation that name them with their texts."""
    labels, make, ending = {
        "captioning": (SIDES, lambda label, seed: png(drawn(label, seed)), "png"),
        "speech_recognition": (tuple(PITCHES), lambda label, seed: wav(tone(label, seed)), "wav"),
    }[task]
    (folder / "files").mkdir(parents=True)
    for part, count in COUNTS.items():
        lines = []
        for number in range(count * len(labels)):
            label = labels[number % len(labels)]
            name = f"files/{part}-{number:02}.{ending}"
            (folder / name).write_bytes(make(label, SEEDS[part] * 1009 + number))
            lines.append(json.dumps({"file": name, "text": TEXTS[label]}) + "\n")
        (folder / f"{part}.jsonl").write_text("".join(lines))
    return folder
