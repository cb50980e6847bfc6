"""Hostile model folders: a real one, changed by an attacker who then writes a manifest with checksums that fit."""

import json
import os
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import toy

from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.storage.complete_folder import MANIFEST, Entry, manifest_bytes
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from strangers.changes import (
    DEFINITION,
    RECIPE,
    SETTINGS,
    VALUES,
    WEIGHTS,
    WHOLE,
    Change,
    settings,
    tensors,
    tokenizers,
    written,
)

FILES = (RECIPE, DEFINITION, SETTINGS, WEIGHTS)
LINES = ["the old dog sees the station .", "two women read a red book .", "der alte Hund sieht den Bahnhof ."]


def write_translator(folder: Path) -> None:
    """Write the model folder that all attacks begin with: a tiny translator with random weights."""
    recipe = toy.recipe(folder.parent, tokenizer={"kind": "bpe", "byte_fallback": True, "vocab_size": 300})
    tokenizer = train_tokenizer(LINES, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    torch.manual_seed(1)
    write_model(folder, recipe, pair, weights(find_task(recipe.task).build(recipe, pair)))


def reseal(folder: Path) -> None:
    """Write a manifest that fits the files of a folder, as the attacker can who knows how heedful does it."""
    entries = {}
    for name in FILES:
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            entries[name] = Entry(len(data), f"{zlib.crc32(data):08x}")
    (folder / MANIFEST).write_bytes(manifest_bytes(entries, {"kind": "model"}))


def attacks() -> dict[str, Change]:
    """All attacks by name; each changes a folder that `write_translator` wrote, and makes its checksums fit."""
    found = {f"{name}, resealed": sealed(change) for name, change in (*settings(), *tensors(), *tokenizers())}
    return found | dict(manifests()) | dict(places())


def drawn(count: int, rng: random.Random) -> dict[str, Change]:
    """`count` attacks drawn at random; more than there are settings to change would be all."""
    every = attacks()
    return {name: every[name] for name in rng.sample(sorted(every), min(count, len(every)))}


def sealed(change: Change) -> Change:
    """A change of the files, followed by that of the manifest."""

    def both(folder: Path) -> None:
        change(folder)
        reseal(folder)

    return both


def manifests() -> Iterator[tuple[str, Change]]:
    """Yield changes of manifest.json itself, with a checksum that fits."""
    for kind, name in NAMES.items():
        yield f"manifest names {kind}", remanifested(lambda f, n=name: f["files"].update({n: SMALL}))
    for key in ("bytes", "crc32"):
        for kind, value in VALUES.items():
            yield (
                f"manifest {key} = {kind}",
                remanifested(lambda f, k=key, v=value: f["files"][RECIPE].update({k: v})),
            )
    for key in ("format", "kind", "files"):
        for kind, value in VALUES.items():
            yield f"manifest {key} = {kind}", remanifested(lambda f, k=key, v=value: f.update({k: v}))
    yield (
        "manifest of 10^5 files",
        remanifested(lambda f: f["files"].update({f"f{i}": {"bytes": 1, "crc32": "0"} for i in range(10**5)})),
    )
    yield "manifest without weights", remanifested(lambda f: f["files"].pop(WEIGHTS))
    yield "manifest without recipe", remanifested(lambda f: f["files"].pop(RECIPE))
    yield "manifest with half a tokenizer", remanifested(lambda f: f["files"].pop(SETTINGS))
    for kind, content in WHOLE.items():
        yield f"manifest is {kind}", written(MANIFEST, content)


SMALL = {"bytes": 3, "crc32": "0"}
NAMES = {
    "an absolute path": "/etc/passwd",
    "a folder above": "../../etc/passwd",
    "a folder above in between": "tokenizer/../../secret",
    "NUL": "a\0b",
    "a surrogate": "\ud800",
    "nothing": "",
    "itself": ".",
    "a backslash": "..\\secret",
    "4000 characters": "a" * 4000,
    "4000 folders": "a/" * 2000 + "a",
    "a tokenizer elsewhere": "tokenizer/source/tokenizer.json",
    "a device": "tokenizer//dev/zero",
}


def remanifested(edit: Callable[[Any], Any]) -> Change:
    """A change of the manifest, with its own checksum made to fit where JSON can be written at all."""

    def change(folder: Path) -> None:
        document = json.loads((folder / MANIFEST).read_bytes())
        del document["crc32"]
        edit(document)
        text = (json.dumps(document, indent=1) + "\n").encode()
        sealed_document = document | {"crc32": f"{zlib.crc32(text):08x}"}
        (folder / MANIFEST).write_bytes((json.dumps(sealed_document, indent=1) + "\n").encode())

    return change


def places() -> Iterator[tuple[str, Change]]:
    """Yield what may lie in the place of each file: a pipe, a device, a folder, a link, a sparse file."""
    for file in (MANIFEST, *FILES):
        for kind, put in PLACED.items():
            yield f"{file} is {kind}", lambda folder, f=file, p=put: placed(folder / f, p)
        yield f"{file} is sparse, and resealed", lambda folder, f=file: sparse(folder, f)


def placed(path: Path, put: Callable[[Path], Any]) -> None:
    """Put something in the place of a file."""
    path.unlink()
    put(path)


PLACED: dict[str, Callable[[Path], Any]] = {
    "a pipe": os.mkfifo,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to a terminal": lambda path: path.symlink_to("/dev/tty"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("/nowhere/at/all"),
    "a folder": lambda path: path.mkdir(),
    "20 sparse GB": lambda path: (path.touch(), os.truncate(path, 20 * 10**9)),
}


def sparse(folder: Path, name: str) -> None:
    """Make a file 20 GB of nothing, in a manifest that says so."""
    os.truncate(folder / name, 20 * 10**9)
    if name != MANIFEST:
        remanifested(lambda f: f["files"].update({name: {"bytes": 20 * 10**9, "crc32": "00000000"}}))(folder)
