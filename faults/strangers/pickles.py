"""Pickles that make a file, the canary, when anything unpickles them, under twelve disguises."""

import gzip
import io
import os
import pickle
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from strangers.changes import DEFINITION, RECIPE, SETTINGS, WEIGHTS
from strangers.folders import reseal, write_translator

CANARY = "canary"


class Payload:
    """An object whose pickle makes the canary in the current folder."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (CANARY,)


PICKLE = pickle.dumps(Payload(), protocol=2)


def zipped(name: str, content: bytes) -> bytes:
    """A zip archive with one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    """A tar archive with one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def objects() -> bytes:
    """A .npy file of an array of objects."""
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def in_model(name: str) -> Callable[[Path], None]:
    """Write a model folder in which a file is a pickle, resealed."""

    def write(place: Path) -> None:
        write_translator(place)
        (place / name).write_bytes(PICKLE)
        reseal(place)

    return write


def in_folder(name: str, content: bytes) -> Callable[[Path], None]:
    """Write a folder with one file."""

    def write(place: Path) -> None:
        place.mkdir()
        (place / name).write_bytes(content)

    return write


def as_file(content: bytes) -> Callable[[Path], None]:
    """Write a file."""

    def write(place: Path) -> None:
        place.write_bytes(content)

    return write


DISGUISES: dict[str, Callable[[Path], None]] = {  # name of the file or folder, and what writes it
    "model.pt": as_file(PICKLE),
    "saved.pt": as_file(zipped("archive/data.pkl", PICKLE)),  # as torch.save does
    "model.joblib": as_file(zlib.compress(PICKLE)),
    "array.npy": as_file(objects()),
    "arrays.npz": as_file(zipped("array.npy", objects())),
    "plain.safetensors": as_file(PICKLE),
    "recipe.json": as_file(PICKLE),
    "vectors.gz": as_file(gzip.compress(PICKLE)),
    "config.toml": as_file(PICKLE),
    "above.tar": as_file(tarred(f"../{CANARY}", PICKLE)),
    "above.zip": as_file(zipped(f"../{CANARY}", PICKLE)),
    "weights": in_model(WEIGHTS),
    "recipe": in_model(RECIPE),
    "definition": in_model(DEFINITION),
    "settings": in_model(SETTINGS),
    "distributed": in_folder(".metadata", PICKLE),  # as torch.distributed.checkpoint does
    "elsewhere": in_folder("pytorch_model.bin", zipped("archive/data.pkl", PICKLE)),
    "ctranslate2": in_folder("model.bin", PICKLE),
}

COMMANDS = (  # that read files; {} is the file or the folder
    "translate hello --model {}",
    "translate --input {} --model model",
    "train recipe.toml --out run --set train.start={}",
    "train recipe.toml --out run --set model.tie=none --set model.source_vectors={}",
    "train recipe.toml --out run --set tokenizer.path={}",
    "train {} --out run",
    "vectors nearest hello --vectors {}",
    "convert {} --out converted",
    "inspect {} hello --out page.html",
    "evaluate {} --source text --reference text",
    "evaluate --hypotheses {} --reference text",
    "info {}",
    "export {} exported",
    "verify {}",
    "tokenizer encode {} text",
    "tokenizer encode model/tokenizer/joint {}",
)
