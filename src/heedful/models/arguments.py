"""Checks of what a model is called with: shapes, types and token ids, whose errors name the argument and the remedy."""

from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import InputError

MASKS = {  # masks, and segments, by the argument whose shape they have
    "padding_mask": ("tokens", "inputs"),
    "segments": ("tokens", "inputs"),
    "source_padding_mask": ("source",),
    "target_padding_mask": ("target",),
}


def check_arguments(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Check the token ids and masks that a `heedful.models.Model` is called with, not inputs of other kinds.

    Raises:
        InputError: an argument is not a tensor, of the wrong type or shape, or holds an id that is not in the
            vocabulary.
    """
    given = dict(zip(parameters(type(model)), args, strict=False)) | dict(keywords)
    lines = {"tokens": model.line, "inputs": model.line, "source": "src", "target": "tgt"}
    for name, line in lines.items():
        table = model.embedding_of(line) if name in given else None
        if table is not None:
            check_ids(
                name, given[name], len(table.weight), looks_at_ids=not (model.training and is_on_gpu(table.weight))
            )
    for name, others in MASKS.items():
        ids = next((given[other] for other in others if other in given), None)
        if given.get(name) is not None and isinstance(ids, Tensor) and model.embedding_of("src") is not None:
            check_mask(name, given[name], ids)
    source, target = given.get("source"), given.get("target")
    if isinstance(source, Tensor) and isinstance(target, Tensor) and len(source) != len(target):
        raise InputError(f"source has {len(source):,} rows and target {len(target):,}; row n of both is a pair")


@cache
def parameters(kind: type[nn.Module]) -> tuple[str, ...]:
    """The names of the arguments of a model's forward pass, without `self`."""
    return tuple(signature(kind.forward).parameters)[1:]


def check_ids(name: str, ids: object, vocabulary: int, *, looks_at_ids: bool) -> None:
    """Check that an argument is a tensor of token ids, (batch, tokens).

    Raises:
        InputError: it is not.
    """
    if not isinstance(ids, Tensor):
        raise InputError(
            f"{name} is a {type(ids).__name__}, not a tensor; give ids of shape (batch, tokens), such as "
            "torch.tensor([tokenizer.encode(text)])"
        )
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise InputError(f"{name} has the type {ids.dtype}; token ids are integers, of type torch.int64")
    if ids.dim() != 2:
        remedy = f"; {name}[None] is a batch of one" if ids.dim() == 1 else ""
        raise InputError(f"{name} has the shape {tuple(ids.shape)}; it is (batch, tokens){remedy}")
    if ids.is_meta or torch.compiler.is_compiling() or not looks_at_ids:
        return
    if wrong := ((ids < 0) | (ids >= vocabulary)).nonzero().tolist():
        row, column = wrong[0]
        raise InputError(
            f"{name} holds the id {int(ids[row, column])} in row {row}, column {column}; the vocabulary has the ids "
            f"0 to {vocabulary - 1:,}. Encode texts with the tokenizer of this model"
        )


def check_mask(name: str, mask: object, ids: Tensor) -> None:
    """Check that a padding mask, or segments, fit the token ids.

    Raises:
        InputError: they do not.
    """
    if not isinstance(mask, Tensor):
        raise InputError(f"{name} is a {type(mask).__name__}, not a tensor of shape {tuple(ids.shape)}")
    if name != "segments" and mask.dtype != torch.bool:
        raise InputError(f"{name} has the type {mask.dtype}; it is torch.bool, True for real tokens")
    if mask.shape != ids.shape[:2]:
        raise InputError(
            f"{name} has the shape {tuple(mask.shape)}, and the ids have {tuple(ids.shape)}; both are equal"
        )


def is_on_gpu(x: Tensor) -> bool:
    """True for a tensor whose values the CPU would have to wait for."""
    return x.device.type not in ("cpu", "meta")
