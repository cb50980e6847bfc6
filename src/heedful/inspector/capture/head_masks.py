"""Attention heads switched off (masked), silent or with uniform attention, as edits for a recorder."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.architectures import Model
from heedful.errors import InputError
from heedful.inspector.capture.recorder import Edit
from heedful.inspector.capture.taps import taps
from heedful.nn.attention import MASKED_SCORE

WILD = set("*?[")  # characters that turn the name of a tap into a pattern


@dataclass(frozen=True, order=True)
class Head:
    """One attention head of a model.

    Attributes:
        block: name of the attention sublayer, as in the names of taps, such as "dec.1.cross".
        number: index of the head in the sublayer, from 0.

    Raises:
        InputError: the block is a pattern such as "dec.*.cross", which names several sublayers.
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
    """List all attention heads of a model, in the order in which the model computes their attention."""
    return [
        Head(name.removesuffix(".attn"), number)
        for name, tap in taps(model).items()
        if name.endswith(".attn")
        for number in range(int(getattr(tap.module, "heads", 0)))
    ]


def silent(head: Head) -> dict[str, Edit]:
    """Edits that switch off an attention head: its output becomes zero."""
    return {f"{head.block}.z": zeroed(head.number)}


def even(head: Head) -> dict[str, Edit]:
    """Edits that give an attention head uniform attention: equal weights on all keys that the mask leaves visible."""
    return {f"{head.block}.score": zeroed(head.number), f"{head.block}.bias": mask_alone(head.number)}


WAYS = {"silent": silent, "even": even}


def zeroed(number: int) -> Edit:
    """Edit that sets the values of one attention head to zero in a tensor (B, H, ...).

    Raises:
        InputError: the edited tensor has fewer heads.
    """

    def edit(x: Tensor) -> Tensor:
        if not 0 <= number < x.size(1):
            raise InputError(f"head {number}: the block has {x.size(1)}, counted from 0")
        x = x.clone()
        x[:, number] = 0
        return x

    return edit


def mask_alone(number: int) -> Edit:
    """Edit that keeps only the attention mask in one head of an attention bias (B H T S), without position biases.

    A bias (B 1 T S), which all heads share, holds no position biases.
    """

    def edit(bias: Tensor) -> Tensor:
        bias, head = bias.clone(), min(number, bias.size(1) - 1)
        bias[:, head] = torch.zeros_like(bias[:, head]).masked_fill(bias[:, head] < MASKED_SCORE / 2, MASKED_SCORE)
        return bias

    return edit


def switched_off(off: Iterable[Head], way: str = "silent") -> dict[str, Edit]:
    """Edits that switch off attention heads while a model is recorded.

    Args:
        off: the attention heads.
        way: one of `WAYS`: "silent" for no output, "even" for uniform attention.

    Raises:
        InputError: `way` is not in `WAYS`.
    """
    if way not in WAYS:
        raise InputError(f"heads are switched off in one of these ways: {', '.join(WAYS)}; not {way}")
    edits: dict[str, Edit] = {}
    for head in off:
        for name, edit in WAYS[way](head).items():
            edits[name] = after(edits[name], edit) if name in edits else edit
    return edits


def after(first: Edit, second: Edit) -> Edit:
    """Compose two edits of a tensor: `first`, then `second`."""
    return lambda x: second(first(x))
