"""Record or edit the tensors of a model's forward pass with PyTorch hooks at named taps.

The hooks exist only inside `recording`; outside of it the model runs unchanged. Attention heads are switched off by
edits (`switched_off`).

B batch, H heads, T queries, S keys.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from heedful.architectures import Model
from heedful.errors import InputError
from heedful.inspector.capture.taps import KERNEL, taps
from heedful.nn.attention import MASKED_SCORE, Attention, mix, scaled_scores, softmax
from heedful.nn.dropout import dropout

Edit = Callable[[Tensor], Tensor]  # of a tensor with the batch dimension first

WILD = set("*?[")  # characters that turn the name of a tap into a pattern


@contextmanager
def recording(
    model: Model, keep: str | Collection[str] = (), edits: Mapping[str, Edit] | None = None
) -> Iterator[dict[str, Tensor]]:
    """Context manager that records and edits tensors of a model's forward passes at named taps.

    Attention whose inner tensors are recorded or edited runs with the plain formula instead of a fused kernel. The
    model is restored at the end, also after an exception. Inside another recording, both hold: the edits of the outer
    one come first.

    Args:
        model: any of heedful's models, in evaluation mode.
        keep: names of taps to record, or patterns such as "dec.*.cross.attn".
        edits: name or pattern of taps -> function that replaces the tensor.

    Yields:
        The recorded tensors by name, (B, ...), from the last forward pass. What a recurrent model computes one step
        after another is joined, so that recording is for one pass.

    Raises:
        InputError: the model has no such tap.
    """
    model_taps = taps(model)
    names = set(matching(keep, model_taps))
    edited = {name: edit for pattern, edit in (edits or {}).items() for name in matching(pattern, model_taps)}
    tensors: dict[str, Tensor] = {}

    def passing(name: str, x: Tensor) -> Tensor:
        view = model_taps[name].view
        x = view.batched(x)
        x = edited[name](x) if name in edited else x
        if name in names:
            if view.joined is not None and name in tensors:
                tensors[name] = torch.cat([tensors[name], x.detach()], view.joined)
            else:
                tensors[name] = x.detach()
        return view.plain(x)

    def before(name: str, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return passing(name, args[0]), *args[1:]

    def after(name: str, _module: nn.Module, _args: tuple[Any, ...], output: Tensor) -> Tensor:
        return passing(name, output)

    inside: dict[Attention, dict[str, str]] = {}
    with ExitStack() as undo:
        for name, tap in model_taps.items():
            if name not in names and name not in edited:
                continue
            if isinstance(tap.module, Attention) and tap.place in KERNEL:
                inside.setdefault(tap.module, {})[tap.place] = name
            elif tap.place == "input":
                undo.callback(tap.module.register_forward_pre_hook(partial(before, name)).remove)
            else:
                undo.callback(tap.module.register_forward_hook(partial(after, name)).remove)

        # No module computes scores or weights by itself: the kernel of the attention is replaced.
        for attention, places in inside.items():
            undo.callback(setattr, attention, "attention_fn", attention.attention_fn)
            outer = attention.attention_fn if isinstance(attention.attention_fn, WatchedKernel) else None
            attention.attention_fn = WatchedKernel(places, passing, outer)
        yield tensors


def matching(patterns: str | Collection[str], names: Iterable[str]) -> list[str]:
    """Names of taps or tensors that match a pattern such as "dec.*.cross.attn", or one of several."""
    matches = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        fitting = [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            raise InputError(f"there is no tensor {pattern}; there are {', '.join(names)}")
        matches += fitting
    return matches


@dataclass(frozen=True)
class WatchedKernel:
    """Attention kernel (formula 1 of Vaswani et al. 2017) that sends its inner tensors through a function by name."""

    names: Mapping[str, str]  # of the taps by place, such as "score"
    passing: Callable[[str, Tensor], Tensor]  # name of the tap, tensor -> the tensor to compute with
    outer: "WatchedKernel | None"  # the kernel of a recording around this one, whose function comes first

    def at(self, place: str, x: Tensor) -> Tensor:
        x = self.outer.at(place, x) if self.outer else x
        return self.passing(self.names[place], x) if place in self.names else x

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, p: float) -> Tensor:
        """Attend as `heedful.nn.attention.attend` does, with the tensors that the functions return."""
        scores = self.at("score", scaled_scores(self.at("q", q), self.at("k", k)))
        weights = self.at("attn", softmax(scores + self.at("bias", bias)))
        return self.at("z", mix(dropout(weights, p), self.at("v", v)))


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


def zeroed(number: int) -> Edit:
    """Edit that sets the values of one attention head to zero in a tensor (B, H, ...)."""

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


# Way of switching a head off -> the tensors of its sublayer to edit, and the edit for the number of a head.
WAYS: dict[str, dict[str, Callable[[int], Edit]]] = {
    "silent": {"z": zeroed},  # its output is zero
    "even": {"score": zeroed, "bias": mask_alone},  # equal weights on all keys that the mask leaves visible
}


def switched_off(off: Iterable[Head], way: str = "silent") -> dict[str, Edit]:
    """Edits for `recording` that switch off attention heads.

    Args:
        off: the attention heads.
        way: one of `WAYS`: "silent" for no output, "even" for uniform attention.

    Raises:
        InputError: `way` is not in `WAYS`.
    """
    if way not in WAYS:
        raise InputError(f"heads are switched off in one of these ways: {', '.join(WAYS)}; not {way}")
    edits: dict[str, list[Edit]] = defaultdict(list)
    for head in off:
        for place, edit_of in WAYS[way].items():
            edits[f"{head.block}.{place}"].append(edit_of(head.number))
    return {name: in_turn(of_heads) for name, of_heads in edits.items()}


def in_turn(edits: Iterable[Edit]) -> Edit:
    """One edit that makes several edits of a tensor, one after another."""

    def edit(x: Tensor) -> Tensor:
        for each in edits:
            x = each(x)
        return x

    return edit
