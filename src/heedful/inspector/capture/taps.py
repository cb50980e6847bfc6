"""Names of all tensors in a model's forward pass (taps), and the module and place where each can be recorded.

    src.tok src.sum src.in                   embeddings; with positions; normalised, the input of the first block
    enc.0.self.q .k .v                       queries, keys and values of each head, with rotary positions applied
    enc.0.self.score .bias .attn .z          q k^T / sqrt(K); attention bias; attention weights; output of each head
    enc.0.self.in .norm .out .resid          residual stream before; normalised; sublayer output; stream after
    enc.0.ffn.in .norm .h .out .resid        likewise for the feed-forward network; .h is after the activation
    enc.norm logits                          after the final norm; before the softmax over the vocabulary

A decoder is `dec`, its input `tgt`, and its cross-attention to `src` is `dec.0.cross`. Layers count from 0, as in the
model's module list. `src.tok` includes segment embeddings. Beam search, which feeds one token at a time, does not pass
`tgt.tok`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from heedful.models import Model
from heedful.nn.attention import Attention
from heedful.nn.stack import NamedStack

STREAM = ("token", "d_model")
KERNEL = {
    "q": ("head", "query", "d_k"),
    "k": ("head", "key", "d_k"),
    "v": ("head", "key", "d_v"),
    "score": ("head", "query", "key"),
    "bias": ("head", "query", "key"),
    "attn": ("head", "query", "key"),
    "z": ("head", "query", "d_v"),
}
SUBLAYERS = {
    "self": ("self_attention", "self_residual"),
    "cross": ("cross_attention", "cross_residual"),
    "ffn": ("feed_forward", "feed_residual"),
}


class Axis(NamedTuple):
    """Named dimension of a recorded tensor.

    Attributes:
        name: such as "head" or "key".
        line: tokens that label the positions, such as "src.read" or "tgt.said" (attributes of `TokenLine`); None: the
            positions have only numbers.
    """

    name: str
    line: str | None = None


@dataclass(frozen=True)
class Tap:
    """Place in a model where a tensor of the forward pass can be recorded or edited.

    Attributes:
        module: the module whose input or output the tensor is, or the attention whose kernel computes the tensor.
        place: "input", "output" or a name in `KERNEL`.
        axes: dimensions of the tensor, without the batch dimension.
    """

    module: nn.Module
    place: str
    axes: tuple[Axis, ...]


def taps(model: Model) -> dict[str, Tap]:
    """All taps of a model by name, in the order in which the forward pass computes the tensors."""
    found = {name: tap for stack in model.named_stacks() for name, tap in _of_stack(stack)}
    if hasattr(model, "output"):
        axes = _axes(model.logit_axes, {"token": f"{model.line}.read"})
        found["logits"] = Tap(model.get_submodule("output"), "output", axes)
    return found


def _axes(names: tuple[str, ...], lines: dict[str, str]) -> tuple[Axis, ...]:
    return tuple(Axis(name, lines.get(name)) for name in names)


def _of_stack(side: NamedStack) -> Iterator[tuple[str, Tap]]:
    stack, sequence = side.stack, side.sequence
    own = f"{sequence}.read"
    lines = {
        "self": {"token": own, "query": own, "key": own},
        "cross": {"token": own, "query": f"{sequence}.said", "key": "src.read"},
        "ffn": {"token": own},
    }
    stream = _axes(STREAM, {"token": own})
    yield f"{sequence}.tok", Tap(stack, "input", stream)
    yield f"{sequence}.sum", Tap(stack.embedding_norm, "input", stream)
    yield f"{sequence}.in", Tap(stack.embedding_norm, "output", stream)
    for number, block in enumerate(stack.blocks):
        parts = dict(block.named_children())
        for short, (sublayer, residual) in SUBLAYERS.items():
            if sublayer in parts:
                name = f"{side.name}.{number}.{short}"
                yield from _of_sublayer(name, parts[sublayer], parts[residual], lines[short])
    yield f"{side.name}.norm", Tap(stack.norm, "output", stream)


def _of_sublayer(
    name: str, sublayer: nn.Module, residual: nn.Module, lines: dict[str, str]
) -> Iterator[tuple[str, Tap]]:
    stream = _axes(STREAM, lines)
    yield f"{name}.in", Tap(residual, "input", stream)
    yield f"{name}.norm", Tap(residual.get_submodule("norm"), "output", stream)
    if isinstance(sublayer, Attention):
        yield from ((f"{name}.{place}", Tap(sublayer, place, _axes(axes, lines))) for place, axes in KERNEL.items())
    else:
        yield f"{name}.h", Tap(sublayer.get_submodule("down"), "input", _axes(("token", "d_ff"), lines))
    yield f"{name}.out", Tap(sublayer, "output", stream)
    yield f"{name}.resid", Tap(residual, "output", stream)
