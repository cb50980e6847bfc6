"""Names of the tensors that can be recorded in a model's forward pass (taps), and the modules to record them at.

    src.tok src.sum src.in                   embeddings; with positions; normalised, the input of the first block
    enc.0.self.q .k .v                       queries, keys and values of each head, with rotary positions applied
    enc.0.self.score .bias .attn .z          q k^T / sqrt(K); attention bias; attention weights; output of each head
    enc.0.self.in .norm .out .resid          residual stream before; normalised; sublayer output; stream after
    enc.0.ffn.in .norm .h .out .resid        likewise for the feed-forward network; .h is after the activation
    enc.0.ffn.gate                           instead of .h in a mixture of experts: the weight of each expert, or 0
    enc.norm logits                          after the final norm; before the softmax over the vocabulary

A recurrent model has instead

    enc.0.in enc.0.hidden                    the input of a layer; its hidden states
    enc.0.input_gate .forget_gate ...        gates of an LSTM; of a GRU .reset_gate .update_gate
    dec.0.start                              the first state: hidden, and the memory cell of an LSTM
    dec.1.cross.attn                         attention weights, if a decoder has attention: one head
    enc.out dec.out                          the output of the stack

and a convolutional model

    src.in                                   embeddings with positions
    enc.0.hidden                             the outputs of a layer's gated linear units; of a ByteNet, of a block
    dec.0.cross.attn                         attention weights of each decoder layer: one head; not in a ByteNet
    enc.out dec.out                          the output of the stack

A decoder is `dec`, its input `tgt`, and its cross-attention to `src` is `dec.0.cross`. Layers count from 0, as in the
model's module list. `src.tok` includes segment embeddings. Beam search, which feeds one token at a time, does not pass
`tgt.tok`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from heedful.architectures import Model
from heedful.nn.attention import Attention
from heedful.nn.experts import MixtureOfExperts
from heedful.nn.named_stacks import NamedConvolutionalStack, NamedRecurrentStack, NamedStack

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


class View(NamedTuple):
    """Layout of a tensor inside a module."""

    batched: Callable[[Tensor], Tensor]  # to a tensor with the batch dimension first
    plain: Callable[[Tensor], Tensor]  # back to the layout of the module
    joined: int | None  # dimension along which several calls, one per step, are concatenated; None for a single call


WHOLE = View(lambda x: x, lambda x: x, None)
PACKED = View(lambda x: x[None], lambda x: x[0], 1)  # the tokens of one row, in one call or one per call
# (B, T, S) -> (B, 1, T, S), the layout of attention with heads; (M, 1, B, D) -> (B, M, D), for a state of M vectors.
ONE_HEAD = View(lambda x: x[:, None], lambda x: x[:, 0], 2)
STATE = View(lambda x: x[:, 0].transpose(0, 1), lambda x: x.transpose(0, 1)[:, None], None)  # for one direction


class Axis(NamedTuple):
    """Named dimension of a recorded tensor, such as "head" or "key".

    `line` names the tokens that label the positions, such as "src.read" or "tgt.said" (attributes of `TokenLine`);
    None if the positions are numbered.
    """

    name: str
    line: str | None = None


@dataclass(frozen=True)
class Tap:
    """Point in a model where a tensor of the forward pass can be recorded or edited."""

    module: nn.Module  # the module whose input or output is the tensor, or the attention whose kernel uses it
    place: str  # "input", "output" or a name in `KERNEL`
    axes: tuple[Axis, ...]  # dimensions of the tensor, without the batch dimension
    view: View = WHOLE


def taps(model: Model) -> dict[str, Tap]:
    """Return all taps of a model by name, in the order in which the forward pass computes the tensors."""
    all_taps: dict[str, Tap] = {}
    for stack in model.named_stacks():
        all_taps.update(_of_stack(stack))
    for stack in model.recurrent_stacks():
        all_taps.update(_of_recurrent_stack(stack))
    for stack in model.convolutional_stacks():
        all_taps.update(_of_convolutional_stack(stack))

    # Models without stacks, such as word2vec, still have embeddings and logits.
    for line in model.lines:
        table = model.embedding_of(line)
        if f"{line}.tok" not in all_taps and isinstance(table, nn.Module):
            all_taps[f"{line}.tok"] = Tap(table, "output", _axes(STREAM, {"token": f"{line}.read"}))
    if hasattr(model, "output"):
        axes = _axes(model.logit_axes, {"token": f"{model.line}.read"})
        all_taps["logits"] = Tap(model.get_submodule("output"), "output", axes)
    return all_taps


def _axes(names: tuple[str, ...], lines: dict[str, str]) -> tuple[Axis, ...]:
    return tuple(Axis(name, lines.get(name)) for name in names)


def _of_stack(side: NamedStack) -> Iterator[tuple[str, Tap]]:
    stack, sequence = side.stack, side.sequence
    own = f"{sequence}.read"
    # A cross-attention query belongs to the token that its position predicts, and has that token's label.
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
            if sublayer not in parts:
                continue
            name, module, line = f"{side.name}.{number}.{short}", parts[sublayer], lines[short]
            yield f"{name}.in", Tap(parts[residual], "input", stream)
            yield f"{name}.norm", Tap(parts[residual].get_submodule("norm"), "output", stream)
            if isinstance(module, Attention):
                yield from (
                    (f"{name}.{inner}", Tap(module, inner, _axes(axes, line))) for inner, axes in KERNEL.items()
                )
            elif isinstance(module, MixtureOfExperts):
                yield f"{name}.gate", Tap(module.gate, "output", _axes(("token", "expert"), line))
            else:
                yield f"{name}.h", Tap(module.get_submodule("down"), "input", _axes(("token", "d_ff"), line))
            yield f"{name}.out", Tap(module, "output", stream)
            yield f"{name}.resid", Tap(parts[residual], "output", stream)
    yield f"{side.name}.norm", Tap(stack.norm, "output", stream)


def _of_recurrent_stack(side: NamedRecurrentStack) -> Iterator[tuple[str, Tap]]:
    own = f"{side.sequence}.read"
    stream, inputs = _axes(STREAM, {"token": own}), _axes(("token", "input"), {"token": own})
    yield f"{side.sequence}.tok", Tap(side.whole, "input", stream)
    for number, bridge in enumerate(side.bridges):
        yield f"{side.name}.{number}.start", Tap(bridge, "output", _axes(("vector", "d_model"), {}), STATE)
    layers = list(side.stack.layers)
    for number, layer in enumerate(layers):
        yield f"{side.name}.{number}.in", Tap(layer.get_submodule("norm"), "input", inputs, PACKED)
        yield f"{side.name}.{number}.hidden", Tap(layer.get_submodule("hidden"), "output", stream, PACKED)
    if side.alignment is not None:
        lines = {"query": f"{side.sequence}.said", "key": "src.read"}
        weights = Tap(side.alignment, "output", _axes(KERNEL["attn"], lines), ONE_HEAD)
        yield f"{side.name}.{len(layers) - 1}.cross.attn", weights
    yield f"{side.name}.out", Tap(side.whole, "output", stream)


def _of_convolutional_stack(side: NamedConvolutionalStack) -> Iterator[tuple[str, Tap]]:
    own = f"{side.sequence}.read"
    stream, channels = (_axes(("token", values), {"token": own}) for values in ("d_model", "channel"))
    yield f"{side.sequence}.in", Tap(side.stack.enter, "input", stream)
    for number, layer in enumerate(side.stack.layers):
        yield f"{side.name}.{number}.hidden", Tap(layer, "output", channels)
    for number, alignment in enumerate(side.alignments):
        lines = {"query": f"{side.sequence}.said", "key": "src.read"}
        yield f"{side.name}.{number}.cross.attn", Tap(alignment, "output", _axes(KERNEL["attn"], lines), ONE_HEAD)
    yield f"{side.name}.out", Tap(side.stack.leave, "output", stream)
