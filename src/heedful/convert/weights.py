"""Weights of converted models: safetensors files, names and shapes of parameters, and vocabulary rows.

V tokens of heedful's vocabulary, W of the original vocabulary, D model.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.architectures.model import misfits
from heedful.errors import InputError
from heedful.nn.embedding import NEVER
from heedful.storage.disk import read_small
from heedful.text.pipeline import ABSENT
from heedful.text.tokenizer import BOS, PAD, UNK

Weights = dict[str, Tensor]
NOTHING = r"(?!)"  # pattern that matches no name
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")


class Names:
    """Table of parameter names in heedful and in another format, which converts weights in both directions.

    Args:
        table: Maps a parameter or module of heedful to its name in the other format. `#` stands for a layer number,
            which is the same in both; `{q,k,v}` stands for several modules of heedful that are one module in the other
            format, stacked along the first axis of a matrix in heedful's layout.
        transposed: A pattern of names in the other format whose matrices are (in, out) instead of (out, in).
    """

    def __init__(self, table: Mapping[str, str], transposed: str = NOTHING) -> None:
        self._rows: list[tuple[list[str], str]] = []
        for ours, theirs in table.items():
            # A row "attention.{q,k,v}" has the members attention.q, attention.k and attention.v.
            head, _, braced = ours.partition("{")
            members, _, tail = braced.partition("}")
            self._rows.append(([head + member + tail for member in members.split(",")], theirs))
        self._transposed = re.compile(transposed)

    def ours(self, weights: Mapping[str, Tensor]) -> Weights:
        """Rename weights of the other format to heedful's names, and split and transpose them.

        Raises:
            KeyError: A weight has no counterpart in heedful.
        """
        ours: Weights = {}
        for name, value in weights.items():
            matches = ((members, match) for members, theirs in self._rows if (match := _match(theirs, name)))
            members, match = next(matches, ([], None))
            if match is None:
                raise KeyError(name)
            # GPT-2's c_attn.weight: (D, 3 D) -> (3 D, D) -> q, k and v, (D, D) each. A single member is one chunk.
            parts = self._transpose(name, value).chunk(len(members))
            for member, part in zip(members, parts, strict=True):
                ours[_fill_in(member, match)] = part.contiguous()
        return ours

    def theirs(self, weights: Mapping[str, Tensor]) -> Weights:
        """Rename heedful's weights to the names of the other format, and stack and transpose them as in that format."""
        stacks: dict[str, dict[int, Tensor]] = {}  # their name: heedful's matrices by their index in the stack
        unnamed = []
        rows = [(member, index, theirs) for members, theirs in self._rows for index, member in enumerate(members)]
        for name, value in weights.items():
            for member, index, theirs in rows:
                if match := _match(member, name):
                    stacks.setdefault(_fill_in(theirs, match), {})[index] = value
                    break
            else:
                unnamed.append(f"{name} {tuple(value.shape)}")
        if unnamed:
            listing = "\n  ".join(sorted(unnamed))
            raise InputError(
                f"the other format has no counterpart for these weights, so the model cannot be converted:\n  {listing}"
            )
        # Stack before transposing, along the outputs of the matrices: (D, D) three times -> (3 D, D) -> (D, 3 D).
        stacked = {name: torch.cat([parts[index] for index in sorted(parts)]) for name, parts in stacks.items()}
        return {name: self._transpose(name, value).contiguous() for name, value in stacked.items()}

    def module(self, name: str) -> tuple[str, list[str]]:
        """Return the other format's name for a module of heedful, and all modules of heedful that are stacked in it.

        Raises:
            KeyError: The other format lacks the module.
        """
        for members, theirs in self._rows:
            for member in members:
                if match := _match(member, name):
                    return _fill_in(theirs, match), [_fill_in(other, match) for other in members]
        raise KeyError(name)

    def is_transposed(self, name: str) -> bool:
        """Return True if the other format stores the weight of a module as (in, out)."""
        return bool(self._transposed.search(f"{name}.weight"))

    @property
    def roots(self) -> list[str]:
        """First parts of the other format's names, which are missing in a model that was saved without its head."""
        return list(dict.fromkeys(theirs.partition(".")[0] for _, theirs in self._rows))

    def _transpose(self, name: str, value: Tensor) -> Tensor:
        return value.T if self._transposed.search(name) else value


def _match(template: str, name: str) -> re.Match[str] | None:
    """Match a parameter name against a template of a module or parameter; `#` matches a layer number."""
    pattern = re.escape(template).replace(r"\#", r"(?P<number>\d+)")
    return re.fullmatch(rf"{pattern}(?P<tail>(?:\..+)?)", name)


def _fill_in(template: str, match: re.Match[str]) -> str:
    return template.replace("#", match.groupdict().get("number", "")) + match["tail"]


def check_weights(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    """Raise an InputError that lists all differences, unless weights have the expected names and shapes."""
    shapes = ({name: value.shape for name, value in each.items()} for each in (expected, weights))
    if problems := misfits(*shapes):
        raise InputError("\n  ".join([f"{where}: the weights do not fit the model", *problems]))


def without_copies(weights: Mapping[str, Tensor], copies: Mapping[str, str], where: str) -> Weights:
    """Remove the second copies of tied weights, which a file stores under two names."""
    single = dict(weights)
    for second, first in copies.items():
        value = single.pop(second, None)
        # If a file has only the second name, its matrix is used; if it has both names, the values have to agree.
        if value is not None and not torch.equal(single.setdefault(first, value), value):
            raise InputError(f"{where}: {second} and {first} differ, but according to the settings they are the same")
    return single


def with_zero_biases(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> Weights:
    """Add a bias of zeros to `weights` for every bias in `expected` that `weights` lacks."""
    zeros = {name: torch.zeros(value.shape) for name, value in expected.items() if name.endswith("bias")}
    return {**zeros, **weights}


def with_prefix(weights: Mapping[str, Tensor], prefix: str, prefixed: str) -> Weights:
    """Add the prefix that names lack in a model saved without its head, except to names that match `prefixed`."""
    return {name if re.fullmatch(prefixed, name) else prefix + name: value for name, value in weights.items()}


def split_by_name(weights: Mapping[str, Tensor], pattern: str) -> tuple[Weights, Weights]:
    """Split weights by name: those whose names do not fully match `pattern`, and those whose names do."""
    rest, matching = {}, {}
    for name, value in weights.items():
        (matching if re.fullmatch(pattern, name) else rest)[name] = value
    return rest, matching


def reorder_rows(weights: Mapping[str, Tensor], old_id_of: NDArray[np.int64], tables: tuple[str, ...]) -> Weights:
    """Reorder the rows of the weights `tables`, (W, D) or (W,), by heedful's ids. A token without a row gets zeros.

    `old_id_of`, (V,), is the row of each of heedful's ids in the original vocabulary, or -1.
    """
    rows = torch.from_numpy(old_id_of)
    # -1 would select the last row: tokens without a row read row 0 here and are set to zero below.
    reordered = {name: weights[name][rows.clamp(min=0)] for name in tables if name in weights}
    for table in reordered.values():
        table[rows == ABSENT] = 0.0
    return {**weights, **reordered}


def suppress_absent(bias: Tensor | None, old_id_of: NDArray[np.int64]) -> Weights:
    """Return an output bias (V,), by name, that gives probability 0 to tokens that the model must never generate.

    These are the tokens that the original vocabulary lacked, and <bos> if it shares its old id with another token. All
    others keep their probabilities. If there are no such tokens and no `bias`, the dictionary is empty.
    """
    suppressed = torch.from_numpy(old_id_of == ABSENT)
    # Two ids with equal rows have equal logits, so the softmax would count the probability of their token twice.
    suppressed[BOS] |= bool((old_id_of == old_id_of[BOS]).sum() > 1)
    if bias is None and not suppressed.any():
        return {}
    base = torch.zeros(len(old_id_of)) if bias is None else bias
    return {"output.bias": base.masked_fill(suppressed, NEVER)}


def absent_tokens(bias: Tensor) -> tuple[int, ...]:
    """Return the ids of the special tokens that conversion added to a model, as `suppress_absent` marks them.

    Only <pad>, <unk> and <bos> can be left out without changing any other probability: if other tokens are marked as
    well, the result is empty.
    """
    ids = (bias == NEVER).nonzero().flatten().tolist()
    return tuple(ids) if {PAD, UNK, BOS}.issuperset(ids) else ()


def present_tokens(model: Any) -> list[int]:
    """Return the ids of a GPT, in order, without the special tokens that conversion added: the rows of its export."""
    output = model.output
    absent = () if output.bias is None else absent_tokens(output.bias)
    return [i for i in range(output.out_features) if i not in absent]


def check_rows(old_id_of: NDArray[np.int64], rows: int, where: str) -> None:
    """Raise an InputError unless tokenizer and embeddings agree: one row per token, and one token per row."""
    ids = np.unique(old_id_of[old_id_of != ABSENT])
    last = ids.max(initial=-1)
    if len(ids) != rows or last != rows - 1:
        raise InputError(
            f"{where}: the tokenizer has {len(ids)} tokens up to id {last}, but the embeddings have {rows} rows; "
            "use the model's own tokenizer, or resize the embeddings in transformers with "
            "model.resize_token_embeddings(len(tokenizer))"
        )


def read_safetensors(folder: Path) -> Weights:
    """Read all tensors of a model folder from its safetensors files, by name, on the CPU."""
    if (folder / SINGLE).is_file():
        return _read_file(folder / SINGLE)
    if not (folder / INDEX).is_file():
        pickled = next((name for name in PICKLED if (folder / name).exists()), None)
        if pickled is None:
            raise InputError(f"{folder}: contains neither {SINGLE} nor {INDEX}; check that it is a model folder")
        raise InputError(
            f"{folder / pickled}: is a pickle file, and reading it can run its author's code; look for {SINGLE} at its "
            "source, or, if you trust it, convert it on a separate machine: "
            "`AutoModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)` of transformers writes one"
        )
    names_of: dict[str, set[str]] = {}  # the names of the tensors in each file
    try:
        for name, file in json.loads(read_small(folder / INDEX))["weight_map"].items():
            names_of.setdefault(file, set()).add(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{folder / INDEX}: cannot be read, or is damaged ({error}); download it again") from error
    weights: Weights = {}
    # A name such as ../x would lead outside the folder.
    for file in names_of:
        if not isinstance(file, str) or Path(file).name != file:
            raise InputError(f"{folder / INDEX}: names {file!r}, which is not a file in the same folder")
    for file, names in names_of.items():
        tensors = _read_file(folder / file)
        if tensors.keys() != names:
            name = min(tensors.keys() ^ names)
            raise InputError(f"{folder / file}: disagrees with {INDEX} about {name!r}; download both again")
        weights |= tensors
    return weights


def _read_file(path: Path) -> Weights:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{path}: is missing, or is not a readable safetensors file ({error}); download it again"
        ) from error


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a safetensors file, with the read and write permissions of its folder."""
    try:
        save_file(dict(tensors), path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise OSError(str(error)) from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors lets only the owner read it
