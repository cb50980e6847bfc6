"""Weights of a model folder in Hugging Face's layout: one safetensors file, or several with an index."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import InputError
from heedful.storage.disk import read_small

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def read_safetensors(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a model folder from its safetensors files, by name, on the CPU.

    Raises:
        InputError: There is no safetensors file, or a file is missing, damaged or different from what the index says.
    """
    if (folder / SINGLE).is_file():
        return _tensors(folder / SINGLE)
    if not (folder / INDEX).is_file():
        raise _nothing(folder)
    weights: dict[str, Tensor] = {}
    for file, names in _index(folder / INDEX).items():
        tensors = _tensors(folder / file)
        if tensors.keys() != names:
            name = min(tensors.keys() ^ names)
            raise InputError(f"{folder / file}: does not agree with {INDEX} about {name!r}; download both again")
        weights |= tensors
    return weights


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a safetensors file that whoever may read its folder can read.

    Raises:
        OSError: Writing failed.
    """
    try:
        save_file(dict(tensors), path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only the owner read it


def _index(path: Path) -> dict[str, set[str]]:
    """Read model.safetensors.index.json: the names of the tensors in each safetensors file."""
    try:
        places = json.loads(read_small(path))["weight_map"]
        files: dict[str, set[str]] = {}
        for name, file in places.items():
            files.setdefault(file, set()).add(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read, or is damaged ({error}); download it again") from error
    for file in files:
        if not isinstance(file, str) or Path(file).name != file:
            raise InputError(f"{path}: names {file!r}, which is no file beside it; download it again")
    return files


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: is missing, or no readable safetensors file ({error}); download it again") from error


def _nothing(folder: Path) -> InputError:
    pickled = next((name for name in PICKLED if (folder / name).exists()), None)
    if pickled is None:
        return InputError(f"{folder}: holds neither {SINGLE} nor {INDEX}; is it the folder of a model?")
    # Code that reads pickled weights in a separate process, if the user explicitly asks for it, belongs here.
    return InputError(
        f"{folder / pickled}: is pickled, and to read it is to run a program of whoever made it; look for {SINGLE} "
        "where it comes from, or if you trust it convert it in a place of its own: `AutoModel.from_pretrained(FOLDER)."
        "save_pretrained(NEW_FOLDER)` of transformers writes one"
    )
