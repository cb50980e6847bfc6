"""Weights of a model folder in Hugging Face's layout: its files, and the names and shapes of parameters."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.errors import InputError
from heedful.storage.disk import read_small

Weights = dict[str, Tensor]
NOTHING = r"(?!)"


class Names:
    """Table of parameter names in heedful and in another format; converts weights in both directions.

    Args:
        table: From a parameter or module of heedful to its name in the other format. `#` stands for the number of a
            layer, equal in both; `{q,k,v}` for several modules of heedful that are one module in the other format,
            stacked along the first axis of a matrix in heedful's layout.
        transposed: A pattern of names in the other format whose matrices are (in, out) instead of (out, in).
    """

    def __init__(self, table: Mapping[str, str], transposed: str = NOTHING) -> None:
        self._rows = [(list(_members(ours)), theirs) for ours, theirs in table.items()]
        self._transposed = re.compile(transposed)

    def ours(self, theirs: Mapping[str, Tensor]) -> Weights:
        """Rename weights of another format to heedful's names, split and transposed; KeyError for an unknown name."""
        ours: Weights = {}
        for name, value in theirs.items():
            members, tail = self._find_theirs(name)
            parts = self._turned(name, value).chunk(len(members))
            ours |= {member + tail: part.contiguous() for member, part in zip(members, parts, strict=True)}
        return ours

    def theirs(self, ours: Mapping[str, Tensor]) -> Weights:
        """Rename heedful's weights to the names of the other format, stacked and transposed as the format has them."""
        places = {name: place for name in ours if (place := self._find_ours(name))}
        if unnamed := sorted(ours.keys() - places.keys()):
            listed = "\n  ".join(f"{name} {tuple(ours[name].shape)}" for name in unnamed)
            raise InputError(f"models of the other format have no place for these weights:\n  {listed}")
        parts: dict[str, dict[int, Tensor]] = {}
        for name, (theirs, number) in places.items():
            parts.setdefault(theirs, {})[number] = ours[name]
        stacked = {name: torch.cat([members[i] for i in sorted(members)]) for name, members in parts.items()}
        return {name: self._turned(name, value).contiguous() for name, value in stacked.items()}

    def _turned(self, name: str, value: Tensor) -> Tensor:
        return value.T if self._transposed.search(name) else value

    def _find_theirs(self, name: str) -> tuple[list[str], str]:
        """Heedful's modules for a parameter name of the other format, and the rest of the name after the module."""
        for members, theirs in self._rows:
            if match := _match(theirs, name):
                return [_numbered(member, match) for member in members], match["tail"]
        raise KeyError(name)

    def _find_ours(self, name: str) -> tuple[str, int] | None:
        """Name in the other format for a parameter of heedful, and the parameter's index in a stacked matrix."""
        for members, theirs in self._rows:
            for place, member in enumerate(members):
                if match := _match(member, name):
                    return _numbered(theirs, match) + match["tail"], place
        return None


def compare(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    """Raise an InputError that lists all differences unless both have the same weights, by name and shape."""
    missing, extra = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    problems = [f"missing: {name} {tuple(expected[name].shape)}" for name in missing]
    problems += [f"no place for: {name} {tuple(weights[name].shape)}" for name in extra]
    problems += [
        f"{name} is {tuple(weights[name].shape)}, and should be {tuple(expected[name].shape)}"
        for name in sorted(weights.keys() & expected.keys())
        if weights[name].shape != expected[name].shape
    ]
    if problems:
        raise InputError("\n  ".join([f"{where}: the weights are not those that there should be", *problems]))


def without_copies(weights: Mapping[str, Tensor], copies: Mapping[str, str], where: str) -> Weights:
    """Remove the second copies of tied weights, which a file stores under two names."""
    single = dict(weights)
    for second, first in copies.items():
        value = single.pop(second, None)
        if value is not None and not torch.equal(single.setdefault(first, value), value):
            raise InputError(f"{where}: {second} and {first} differ, and the settings say that they are one matrix")
    return single


def with_zero_biases(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> Weights:
    """Add a bias of zeros to `weights` for every bias in `expected` that `weights` lacks."""
    zeros = {name: torch.zeros(value.shape) for name, value in expected.items() if name.endswith("bias")}
    return {**zeros, **weights}


def with_prefix(weights: Mapping[str, Tensor], prefix: str, prefixed: str) -> Weights:
    """Add the prefix that the names of a model lack which was saved without its head; names that match have it."""
    return {name if re.fullmatch(prefixed, name) else prefix + name: value for name, value in weights.items()}


def without(weights: Mapping[str, Tensor], pattern: str) -> tuple[Weights, Weights]:
    """Split weights by name: the weights whose names do not match `pattern` in full, and the weights that do."""
    rest, matching = {}, {}
    for name, value in weights.items():
        (matching if re.fullmatch(pattern, name) else rest)[name] = value
    return rest, matching


def _members(names: str) -> Iterator[str]:
    """Expand braces in a template of names: `a.{b,c}` becomes `a.b` and `a.c`."""
    head, _, braced = names.partition("{")
    inside, _, tail = braced.partition("}")
    return (head + member + tail for member in inside.split(","))


def _match(template: str, name: str) -> re.Match[str] | None:
    """Match a parameter name against a template of a module or parameter; `#` matches the number of a layer."""
    pattern = re.escape(template).replace(r"\#", r"(?P<number>\d+)")
    return re.fullmatch(rf"{pattern}(?P<tail>(?:\..+)?)", name)


def _numbered(template: str, match: re.Match[str]) -> str:
    return template.replace("#", match.groupdict().get("number", ""))


SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def read_safetensors(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a model folder from its safetensors files, by name, on the CPU."""
    if (folder / SINGLE).is_file():
        return _tensors(folder / SINGLE)
    if not (folder / INDEX).is_file():
        pickled = next((name for name in PICKLED if (folder / name).exists()), None)
        if pickled is None:
            raise InputError(f"{folder}: holds neither {SINGLE} nor {INDEX}; is it the folder of a model?")
        raise InputError(
            f"{folder / pickled}: is pickled, and to read it is to run a program of whoever made it; look for {SINGLE} "
            "where it comes from, or if you trust it convert it in a place of its own: "
            "`AutoModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)` of transformers writes one"
        )
    weights: dict[str, Tensor] = {}
    for file, names in _index(folder / INDEX).items():
        tensors = _tensors(folder / file)
        if tensors.keys() != names:
            name = min(tensors.keys() ^ names)
            raise InputError(f"{folder / file}: does not agree with {INDEX} about {name!r}; download both again")
        weights |= tensors
    return weights


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a safetensors file that whoever may read its folder can read."""
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
