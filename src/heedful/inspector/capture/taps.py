"""A name for every tensor of a forward pass, and where in the model it passes by.

    src.tok src.sum src.in                   what is embedded; with its position; normalised, as it enters the stack
    enc.0.self.q .k .v                       queries, keys and values of each head, rotated where positions rotate
    enc.0.self.score .bias .attn .z          q k^T / sqrt(K); what is added; softmax of both; what each head has read
    enc.0.self.in .norm .out .resid          the stream before; normalised; what the sublayer adds; the stream after
    enc.0.ffn.in .norm .h .out .resid        the same, and the hidden layer after its activation
    enc.norm logits                          after the last block; before the softmax over the vocabulary

Decoders are `dec`, read `tgt`, and look at `src` in `dec.0.cross`. Layers count from 0, as in the model's own list.
What segments add is in `src.tok`; a search, which feeds a token at a time, does not pass `tgt.tok`.
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
    """A dimension of a tensor.

    Attributes:
        name: such as "head" or "key".
        line: whose tokens its places are, such as "src.read" or "tgt.said" (see `reading.Line`); None:
            they have numbers only.
    """

    name: str
    line: str | None = None


@dataclass(frozen=True)
class Tap:
    """Where a tensor passes by.

    Attributes:
        module: whose input or output it is, or the attention whose kernel makes it.
        place: "input", "output" or a name in `KERNEL`.
        axes: what its dimensions are, without that of the batch.
    """

    module: nn.Module
    place: str
    axes: tuple[Axis, ...]


def taps(model: Model) -> dict[str, Tap]:
    """Every tap of a model by its name, in the order in which tensors pass."""
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
