"""Cross-attention weights of an encoder-decoder of any architecture, recorded while it reads an output.

B batch, N source tokens or other inputs with F features, S positions of the encoder, T target tokens, H heads.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.model import Model, SourceToTarget
from heedful.nn.attention import Attention, softmax

LOCK = threading.Lock()  # one thread at a time records the attention of a model


def attention_layers(model: Model) -> list[nn.Module]:
    """List the modules that compute the cross-attention of each decoder layer; some models have none.

    In a Transformer, it is an `Attention`; in other models, a module that the weights (B T S) of one head pass through.
    """
    blocks = [block for side in model.named_stacks() for block in side.stack.blocks]
    layers: list[nn.Module] = [block.cross_attention for block in blocks if hasattr(block, "cross_attention")]
    layers += [side.alignment for side in model.recurrent_stacks() if side.alignment is not None]
    return layers + [layer for side in model.convolutional_stacks() for layer in side.alignments]


def head_counts(model: Model) -> list[int]:
    """Return the number of cross-attention heads of each decoder layer that has cross-attention."""
    return [getattr(layer, "heads", 1) for layer in attention_layers(model)]


def upper_heads(counts: Sequence[int]) -> range:
    """Return the numbers of the heads in the upper half of the layers, given the number of heads of each layer."""
    return range(sum(counts[: len(counts) // 2]), sum(counts))


def head_weights(
    model: SourceToTarget,
    source: Shaped[Tensor, "B N *F"],
    source_mask: Bool[Tensor, "B N"],
    target: Int[Tensor, "B T"],
    target_mask: Bool[Tensor, "B T"],
    heads: Sequence[int],
) -> Float[Tensor, "B H T S"]:
    """Compute the cross-attention weights of some heads for sources and the outputs that the decoder reads.

    Row t is the attention of the position that reads target token t, and predicts the next one. The heads are numbered
    across all decoder layers, and must be sorted. A recurrent decoder reads one pair at a time, B = 1.
    """
    layers = attention_layers(model)
    first = pairwise(accumulate(head_counts(model), initial=0))  # each layer's first head, and the next one's
    own = {
        layer: [head - begin for head in heads if begin <= head < end]
        for layer, (begin, end) in zip(layers, first, strict=True)
    }
    recorded: dict[nn.Module, list[Tensor]] = {layer: [] for layer in layers}  # (B H T S); recurrent: for each step
    thread = threading.get_ident()

    def record(layer: nn.Module, weights: Tensor) -> None:
        if threading.get_ident() == thread:  # other threads may use the model at the same time
            recorded[layer].append(weights[:, own[layer]].float())

    # An attention kernel does not return its weights, so they are computed separately.
    def recorder(attention: Attention, kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, p: float = 0.0) -> Tensor:
            record(attention, softmax(attention.scores(q, k) + bias))
            return kernel(q, k, v, bias, p)

        return attend

    def record_output(layer: nn.Module, _arguments: Any, weights: Tensor) -> None:
        record(layer, weights[:, None])

    with LOCK, ExitStack() as undo, torch.inference_mode():
        for layer in layers:
            if isinstance(layer, Attention):
                undo.callback(partial(setattr, layer, "attention_fn", layer.attention_fn))
                layer.attention_fn = recorder(layer, layer.attention_fn)
            else:
                undo.callback(layer.register_forward_hook(record_output).remove)
        model.hidden(source, source_mask, target, target_mask)
    return torch.cat([torch.cat(steps, dim=2) for steps in recorded.values()], dim=1).cpu()
