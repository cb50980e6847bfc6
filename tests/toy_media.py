"""Drawn images and videos and synthesised audio files of a few classes, and recipes for them: a moment's work."""

from copy import deepcopy
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from PIL import Image

from heedful.architectures import weights
from heedful.architectures.input_layers import media_classifier
from heedful.checkpoint import write_model
from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from heedful.text.tokenizer_pair import NoTokenizers

Values = dict[str, Any]

RATE = 1000
SIDES = ("left", "right", "top")  # the part of an image that is bright
PITCHES = {"high": 310.0, "low": 70.0}  # of a tone, in Hz
DIRECTIONS = {"left": -1, "right": 1}  # of a bar that moves
COUNTS = {"train": 11, "valid": 5}  # files of each class
SEEDS = {"train": 1, "valid": 2}  # no file of one is in the other

_COMMON: Values = {
    "data": {"train": [{"source": "train"}], "valid": {"source": "valid"}},
    "model": {"d_model": 16, "d_ff": 23, "heads": 2, "encoder_layers": 1, "dropout": 0.1},
    "optimizer": {"name": "adamw", "lr": 0.01, "schedule": "constant", "warmup": 3},
    "train": {
        "max_updates": 11,
        "precision": "float32",
        "batch_tokens": 67,
        "validate_every": 4,
        "save_every": 3,
        "log_every": 2,
        "threads": 1,
        "device": "cpu",
    },
}
_OWN: dict[str, Values] = {
    "image_classification": {"image": {"size": [14, 21], "patch": 7, "shift": 3, "flip": True, "mixup": 0.3}},
    "audio_classification": {
        "audio": {"rate": RATE, "window": 50, "hop": 20, "mels": 7, "max_seconds": 1.0, "speed": 0.1, "time_masks": 1}
    },
    "video_classification": {
        "image": {"size": [14, 21], "patch": 7, "shift": 2, "mixup": 0.3},
        "video": {"frames": 6, "tubelet": 2},
    },
}
TASKS = tuple(_OWN)
LABELS = {task: tuple(classes) for task, classes in zip(TASKS, (SIDES, PITCHES, DIRECTIONS), strict=True)}
ENDINGS = dict(zip(TASKS, (".png", ".wav", ".gif"), strict=True))


def recipe(task: str, folder: Path, **tables: Values) -> Recipe:
    """The recipe of a task over the files that `write_files` wrote, with some keys changed."""
    values = deepcopy(_COMMON)
    for changes in (_OWN[task], tables):
        for table, own in changes.items():
            values.setdefault(table, {}).update(own)
    values["data"]["root"] = str(folder)
    return make_recipe({"task": task, **values})


def write_untrained(task: str, folder: Path, files: Path) -> Path:
    """A model with random weights for the classes of the files, in a folder."""
    made = recipe(task, files)
    made = replace(made, data=replace(made.data, labels=LABELS[task]))
    torch.manual_seed(1)
    model = media_classifier(made, len(LABELS[task]))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    write_model(folder, made, NoTokenizers(), weights(model))
    return folder


def write_files(task: str, folder: Path) -> Path:
    """Files of each class in folders of their own, below train and valid."""
    write = dict(zip(TASKS, (write_pictures, write_sounds, write_videos), strict=True))[task]
    for part, count in COUNTS.items():
        for label in LABELS[task]:
            write(folder / part / label, label, count, seed=SEEDS[part])
    return folder


def write_pictures(folder: Path, label: str, count: int, seed: int = 1) -> None:
    """PNG files of a class."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.fromarray(drawn(label, seed * 1009 + number)).save(folder / f"{number:02}.png")


def write_sounds(folder: Path, label: str, count: int, seed: int = 1) -> None:
    """WAV files of a class."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:02}.wav").write_bytes(wav(tone(label, seed * 1009 + number)))


def write_videos(folder: Path, label: str, count: int, seed: int = 1) -> None:
    """GIF files of a class."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:02}.gif").write_bytes(animated(moving(label, seed * 1009 + number)))


def drawn(label: str, seed: int) -> np.ndarray:
    """Pixels (15 23 3) of which one part is brighter than the rest."""
    pixels = np.random.default_rng(seed).integers(90, size=(15, 23, 3), dtype=np.uint8)
    part = {"left": np.s_[:, :11], "right": np.s_[:, 12:], "top": np.s_[:7]}[label]
    pixels[part] += 150
    return pixels


def tone(label: str, seed: int) -> np.ndarray:
    """Samples of a tone of 0.2 to 0.9 seconds."""
    chance = np.random.default_rng(seed)
    times = np.arange(chance.integers(200, 900)) / RATE
    noise = 0.1 * chance.normal(size=len(times))
    return (0.5 * np.sin(2 * np.pi * PITCHES[label] * times) + noise).astype(np.float32)


def moving(label: str, seed: int) -> np.ndarray:
    """3 to 8 frames (T 14 21) of a bar that crosses the image to the right or, in reverse order, to the left.

    So no frame tells where the bar goes, but their order does.
    """
    chance = np.random.default_rng(seed)
    frames = chance.integers(90, size=(chance.integers(3, 9), 14, 21), dtype=np.uint8)
    for frame, place in zip(frames, np.linspace(0, 17, len(frames)), strict=True):
        frame[:, round(place) : round(place) + 4] += 150
    return frames[:: DIRECTIONS[label]]


def animated(frames: np.ndarray, kind: str = "GIF", **options: object) -> bytes:
    """The bytes of an animated image."""
    first, *others = map(Image.fromarray, frames)
    stream = BytesIO()
    first.save(stream, kind, save_all=True, append_images=others, **options)
    return stream.getvalue()


def wav(samples: np.ndarray, rate: int = RATE, subtype: str = "PCM_16") -> bytes:
    """The bytes of a WAV file."""
    stream = BytesIO()
    soundfile.write(stream, samples, rate, format="WAV", subtype=subtype)
    return stream.getvalue()


def png(pixels: np.ndarray) -> bytes:
    """The bytes of a PNG file."""
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()
