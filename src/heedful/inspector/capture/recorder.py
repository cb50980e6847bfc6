"""Record or edit the tensors of a model's forward pass with PyTorch hooks at named taps.

The hooks exist only inside `recording`; outside it, the model runs unchanged. Attention heads are switched off by edits
(`switched_off`).

B batch, H heads, T queries, S keys.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor, nn

from heedful.architectures import Model
from heedful.errors import InputError
from heedful.inspector.capture.taps import KERNEL, taps
from heedful.nn.attention import MASKED_SCORE, Attention, mix, softmax
from heedful.nn.dropout import dropout
from heedful.nn.named_stacks import stacks
from heedful.wording import counted

Edit = Callable[[Tensor], Tensor]  # replaces a tensor, which has the batch dimension first

WILD = set("*?[")  # characters that turn the name of a tap into a pattern


@contextmanager
def recording(
    model: Model, keep: str | Collection[str] = (), edits: Mapping[str, Edit] | None = None
) -> Iterator[dict[str, Tensor]]:
    """Record and edit the tensors of a model's forward passes at named taps, as a context manager.

    Attention whose inner tensors are recorded or edited runs with the plain formula instead of a fused kernel, and
    computes the weights of all queries and keys, even with `model.window` or linear attention. The model is restored
    at the end, even after an exception. Recordings can be nested: the edits of the outer one are applied first.

    Args:
        model: Any of heedful's models, in evaluation mode.
        keep: Names of taps to record, or patterns such as "dec.*.cross.attn".
        edits: Maps a name or pattern of taps to the function that replaces their tensors.

    Yields:
        The recorded tensors by name, (B, ...), from the last forward pass. Tensors that a recurrent or
        convolutional model computes step by step are concatenated, so record a single pass.
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
            # A recurrent decoder calls a module once for each token; its tensors are joined into one.
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
    # Each change to the model registers its removal at once, so that none is left after an exception.
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

        # Scores and weights are not outputs of a module, so the attention kernel is replaced.
        for attention, tap_names in inside.items():
            undo.callback(setattr, attention, "attention_fn", attention.attention_fn)
            outer = attention.attention_fn if isinstance(attention.attention_fn, WatchedKernel) else None
            attention.attention_fn = WatchedKernel(tap_names, passing, outer, attention.scores)
        for stack in stacks(model) if inside else ():
            undo.callback(setattr, stack, "weighs_all", stack.weighs_all)
            stack.weighs_all = True
        yield tensors


def matching(patterns: str | Collection[str], names: Iterable[str]) -> list[str]:
    """Return the names of taps or tensors that match a pattern such as "dec.*.cross.attn", or one of several."""
    matches = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        fitting = [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            raise InputError(f"the tensor {pattern} does not exist; choose one of {', '.join(names)}")
        matches += fitting
    return matches


@dataclass(frozen=True)
class WatchedKernel:
    """Attention kernel (formula 1 of Vaswani et al. 2017) that passes its inner tensors, by name, to a function."""

    names: Mapping[str, str]  # key of `KERNEL` (such as "score") -> name of the tap
    passing: Callable[[str, Tensor], Tensor]  # name of the tap, tensor -> the tensor to use
    outer: "WatchedKernel | None"  # the kernel of the outer recording, whose function is applied first
    scores: Callable[[Tensor, Tensor], Tensor]  # those of the attention whose kernel this replaces

    def at(self, place: str, x: Tensor) -> Tensor:
        # This kernel replaces that of an outer `recording`, so it calls the outer function as well.
        x = self.outer.at(place, x) if self.outer else x
        return self.passing(self.names[place], x) if place in self.names else x

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, p: float) -> Tensor:
        """Compute attention as `heedful.nn.attention.attend` does, but use the tensors that `passing` returns."""
        scores = self.at("score", self.scores(self.at("q", q), self.at("k", k)))
        weights = self.at("attn", softmax(scores + self.at("bias", bias)))
        return self.at("z", mix(dropout(weights, p), self.at("v", v)))


@dataclass(frozen=True, order=True)
class Head:
    """One attention head of a model.

    Attributes:
        block: Name of the attention sublayer, as in the names of taps, such as "dec.1.cross".
        number: Index of the head in the sublayer, from 0.
    """

    block: str
    number: int

    def __post_init__(self) -> None:
        if WILD & set(self.block):
            raise InputError(
                f'"{self.block}" is a pattern, but a head belongs to a single block; give that block, such as '
                "dec.1.cross, and list several heads one by one"
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
    """Return an edit that sets one attention head to zero in a tensor (B, H, ...)."""

    def edit(x: Tensor) -> Tensor:
        if not 0 <= number < x.size(1):
            raise InputError(f"head {number}: the block has {counted(x.size(1), 'heads')}, counted from 0")
        x = x.clone()
        x[:, number] = 0
        return x

    return edit


def mask_alone(number: int) -> Edit:
    """Return an edit that keeps only the mask in one head of an attention bias (B H T S), without position biases.

    A bias (B 1 T S) that all heads share does not contain position biases.
    """

    def edit(bias: Tensor) -> Tensor:
        # Position biases such as ALiBi add to the mask, so a masked key has a value near MASKED_SCORE. A bias that all
        # heads share has size 1 in the dimension of heads.
        bias, head = bias.clone(), min(number, bias.size(1) - 1)
        bias[:, head] = torch.zeros_like(bias[:, head]).masked_fill(bias[:, head] < MASKED_SCORE / 2, MASKED_SCORE)
        return bias

    return edit


# For each way to switch off a head: the tensors of its sublayer to edit, and the edit for a head number.
WAYS: dict[str, dict[str, Callable[[int], Edit]]] = {
    "silent": {"z": zeroed},  # its output is zero
    "even": {"score": zeroed, "bias": mask_alone},  # equal weights on all visible keys
}


def switched_off(off: Iterable[Head], way: str = "silent") -> dict[str, Edit]:
    """Return the edits for `recording` that switch off attention heads.

    Args:
        off: The attention heads.
        way: One of `WAYS`: "silent" for zero output, "even" for uniform attention.
    """
    if way not in WAYS:
        raise InputError(f'unknown way "{way}" to switch off heads; choose one of {", ".join(WAYS)}')
    edits: dict[str, list[Edit]] = defaultdict(list)
    for head in off:
        for place, edit_of in WAYS[way].items():
            edits[f"{head.block}.{place}"].append(edit_of(head.number))

    def applied(x: Tensor, edit: Edit) -> Tensor:
        return edit(x)

    # Several heads of a sublayer share one edit of each tensor, which applies the edits of these heads in turn.
    return {name: partial(reduce, applied, of_heads) for name, of_heads in edits.items()}
