"""Record or edit the tensors of a model's forward pass with PyTorch hooks at named taps.

The hooks exist only inside `recording`; outside of it the model runs unchanged.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from heedful.architectures import Model
from heedful.errors import InputError
from heedful.inspector.capture.taps import KERNEL, Tap, taps
from heedful.nn.attention import Attention, mix, scaled_scores, softmax
from heedful.nn.dropout import dropout

Edit = Callable[[Tensor], Tensor]  # of a tensor with the batch dimension first


@contextmanager
def recording(
    model: Model, keep: Collection[str] = (), edits: Mapping[str, Edit] | None = None
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
    there = taps(model)
    kept = {name for pattern in patterns(keep) for name in matching(pattern, there)}
    edited = {name: edit for pattern, edit in (edits or {}).items() for name in matching(pattern, there)}
    found: dict[str, Tensor] = {}

    def passing(name: str, x: Tensor) -> Tensor:
        view = there[name].view
        seen = view.batched(x)
        seen = edited[name](seen) if name in edited else seen
        if name in kept:
            if view.joined is not None and name in found:
                found[name] = torch.cat([found[name], seen.detach()], view.joined)
            else:
                found[name] = seen.detach()
        return view.plain(seen)

    inside: dict[Attention, dict[str, str]] = {}
    with ExitStack() as undo:
        for name in [name for name in there if name in kept or name in edited]:
            tap = there[name]
            if isinstance(tap.module, Attention) and tap.place in KERNEL:
                inside.setdefault(tap.module, {})[tap.place] = name
            else:
                undo.callback(hook(tap, name, passing))
        for attention, names in inside.items():
            undo.callback(setattr, attention, "attention_fn", attention.attention_fn)
            outer = attention.attention_fn if isinstance(attention.attention_fn, WatchedKernel) else None
            attention.attention_fn = WatchedKernel(names, passing, outer)
        yield found


def patterns(names: str | Collection[str]) -> Collection[str]:
    """Normalise an argument of tap names or patterns: a single string becomes a list."""
    return [names] if isinstance(names, str) else names


def matching(pattern: str, there: Iterable[str]) -> list[str]:
    """Names of taps or tensors that match a pattern such as "dec.*.cross.attn".

    Raises:
        InputError: no name matches.
    """
    found = [name for name in there if fnmatchcase(name, pattern)]
    if not found:
        raise InputError(f"there is no tensor {pattern}; there are {', '.join(there)}")
    return found


def hook(tap: Tap, name: str, passing: Callable[[str, Tensor], Tensor]) -> Callable[[], None]:
    """Register a hook that sends a module's input or output through `passing`; return the function to remove it."""
    if tap.place == "input":
        return tap.module.register_forward_pre_hook(lambda _, args: (passing(name, args[0]), *args[1:])).remove
    return tap.module.register_forward_hook(lambda *passed: passing(name, passed[-1])).remove


@dataclass(frozen=True)
class WatchedKernel:
    """Attention kernel (formula 1 of Vaswani et al. 2017) that sends its inner tensors through a function by name.

    Attributes:
        names: names of the taps by place, such as "score".
        passing: takes the name of a tap and the tensor; returns the tensor to go on with.
        outer: the kernel of a recording around this one, whose function comes first.
    """

    names: Mapping[str, str]
    passing: Callable[[str, Tensor], Tensor]
    outer: "WatchedKernel | None"

    def at(self, place: str, x: Tensor) -> Tensor:
        """Send the tensor of a place through the function of this recording, after those of the outer ones."""
        x = self.outer.at(place, x) if self.outer else x
        return self.passing(self.names[place], x) if place in self.names else x

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, p: float) -> Tensor:
        """Attend as `heedful.nn.attention.attend` does, with the tensors that the functions give back."""
        scores = self.at("score", scaled_scores(self.at("q", q), self.at("k", k)))
        weights = self.at("attn", softmax(scores + self.at("bias", bias)))
        return self.at("z", mix(dropout(weights, p), self.at("v", v)))
