"""Heads switched off, each in one of two ways: what a recorder takes as edits."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.inspector.capture.recorder import Edit
from heedful.inspector.capture.taps import taps
from heedful.models import Model
from heedful.nn.attention import HIDDEN

WILD = set("*?[")  # what makes a pattern of a name


@dataclass(frozen=True, order=True)
class Head:
    """One head.

    Attributes:
        block: as in the names of taps, such as "dec.1.cross".
        number: from 0.

    Raises:
        InputError: the block is a pattern, which elsewhere chooses several tensors.
    """

    block: str
    number: int

    def __post_init__(self) -> None:
        if WILD & set(self.block):
            raise InputError(
                f'"{self.block}" is a pattern of blocks, and a head stands in one; name it, such as dec.1.cross: '
                "several heads are given one by one"
            )


def heads(model: Model) -> list[Head]:
    """Every head of a model, in the order in which they compute."""
    return [
        Head(name.removesuffix(".attn"), number)
        for name, tap in taps(model).items()
        if name.endswith(".attn")
        for number in range(int(getattr(tap.module, "heads", 0)))
    ]


def silent(head: Head) -> dict[str, Edit]:
    """The head adds nothing."""
    return {f"{head.block}.z": zeroed(head.number)}


def even(head: Head) -> dict[str, Edit]:
    """The head looks at everything that it may see alike, whatever that is and wherever it stands."""
    return {f"{head.block}.score": zeroed(head.number), f"{head.block}.bias": mask_alone(head.number)}


WAYS = {"silent": silent, "even": even}


def zeroed(number: int) -> Edit:
    """Zeros for one head of (B H ...).

    Raises:
        InputError: when it is met by a block with fewer heads.
    """

    def edit(x: Tensor) -> Tensor:
        if not 0 <= number < x.size(1):
            raise InputError(f"head {number}: the block has {x.size(1)}, counted from 0")
        x = x.clone()
        x[:, number] = 0
        return x

    return edit


def mask_alone(number: int) -> Edit:
    """The attention mask without what the positions add to it, for one head of a bias (B H T S).

    Where heads share one bias, (B 1 T S), the positions add nothing.
    """

    def edit(bias: Tensor) -> Tensor:
        bias, head = bias.clone(), min(number, bias.size(1) - 1)
        bias[:, head] = torch.zeros_like(bias[:, head]).masked_fill(bias[:, head] < HIDDEN / 2, HIDDEN)
        return bias

    return edit


def switched_off(off: Iterable[Head], way: str = "silent") -> dict[str, Edit]:
    """The edits that switch heads off.

    Args:
        off: the heads.
        way: one of `WAYS`.

    Raises:
        InputError: there is no such way.
    """
    if way not in WAYS:
        raise InputError(f"heads are switched off in one of these ways: {', '.join(WAYS)}; not {way}")
    edits: dict[str, Edit] = {}
    for head in off:
        for name, edit in WAYS[way](head).items():
            edits[name] = after(edits[name], edit) if name in edits else edit
    return edits


def after(first: Edit, second: Edit) -> Edit:
    """One edit, then another."""
    return lambda x: second(first(x))
