"""From the residual stream to logits: the logit lens, and direct logit attribution.

The logit lens (nostalgebraist 2020) predicts tokens from the residual stream after each block.

Direct logit attribution (Elhage et al. 2021) splits the logit of a token into the contributions of a model's parts. The
residual stream is the sum of embedding, position and all sublayer outputs. A logit would be a linear function of the
stream if norms did not divide by a scale. With each scale frozen at its value in the recorded pass, every norm is
affine, and the logit is exactly the sum of its parts. All norms between a part and the logit are frozen: the final norm
of a pre-norm model, the norms of all later sublayers in a post-norm model. The GELU in BERT's head is frozen, too:
GELU(x) = x gate(x), with constant gates.

A part is a direct effect: indirect effects, through the scales or through later sublayers, are not included. A
translator's encoder contributes only through the heads of cross-attention.

L blocks, T tokens, K best tokens, D model size, V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.architectures import Model
from heedful.architectures.model import evaluating
from heedful.architectures.transformer.layers import PostNorm
from heedful.errors import InputError
from heedful.inspector.capture.taps import SUBLAYERS
from heedful.inspector.capture.trace import Trace
from heedful.nn.attention import Attention
from heedful.nn.experts import MixtureOfExperts
from heedful.nn.named_stacks import NamedStack


@dataclass(frozen=True)
class Lens:
    """Logit lens: token predictions after each block and at each position; the last block's are the model's own."""

    tokens: Int[np.ndarray, "L T K"]  # ids of the most probable tokens, best first
    log_probs: Float[np.ndarray, "L T K"]  # of `tokens`
    entropy: Float[np.ndarray, "L T"]  # of the distribution over the whole vocabulary, in nats
    rank: Int[np.ndarray, "L T"]  # from 0, of the most probable token after the last block
    last_log_probs: Float[np.ndarray, "L T"]  # of the most probable token after the last block


@torch.no_grad()
def lens(model: Model, trace: Trace, count: int = 10) -> Lens:
    """Compute the logit lens from a trace: token predictions from the residual stream after each block.

    Args:
        model: The model of the trace.
        trace: A trace that contains the residual stream after each block, "*.ffn.resid".
        count: Number of most probable tokens to keep for each block and position.
    """
    check_lens(model)
    side = model.named_stacks()[-1]
    device = next(model.parameters()).device
    streams = [
        torch.from_numpy(trace[f"{side.name}.{layer}.ffn.resid"].values) for layer in range(len(side.stack.blocks))
    ]
    with evaluating(model):
        log_probs = torch.stack([model.head(side.stack.norm(x.to(device))).log_softmax(-1) for x in streams])  # L T V
    best, tokens = log_probs.topk(count)
    # The prediction of the last block is the model's; its rank shows at which block it becomes the most probable token.
    last = tokens[-1, :, 0].expand(len(streams), -1)[..., None]
    last_log_probs = log_probs.gather(-1, last)
    rank = (log_probs > last_log_probs).sum(-1)
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    return Lens(*(x.cpu().numpy() for x in (tokens, best, entropy, rank, last_log_probs[..., 0])))


def has_lens(model: Model) -> bool:
    """Return True if the logit lens applies to a model: it predicts tokens from a stack of blocks."""
    return model.predicts_tokens and bool(model.named_stacks())


def check_lens(model: Model) -> None:
    if not has_lens(model):
        raise InputError(
            f"a {type(model).__name__} does not predict tokens from a stack of blocks, so it has no logit lens"
        )


@dataclass(frozen=True)
class Part:
    """Summand of a logit in direct logit attribution, such as the contribution of an attention head."""

    source: str  # "tgt" or "src" for embeddings, a sublayer such as "dec.0.cross", a stack, "transform" or "output"
    kind: str  # "token", "position", "head", "hidden" (a feed-forward network), "bias", or "norm" (the bias of a norm)
    value: float
    head: int | None = None  # from 0


@dataclass(frozen=True)
class Attribution:
    """Direct logit attribution: the logit of one token at one position, and the parts that sum to the logit."""

    place: int  # position in the tokens of the last stack, from 0
    token: int
    logit: float  # of the model
    parts: tuple[Part, ...]  # in the order in which the model adds them
    difference: float  # the sum of the parts minus the logit: a rounding error


@torch.no_grad()
def attribute(model: Any, trace: Trace, place: int, token: int) -> Attribution:
    """Split the logit of a token at a position into the contributions of embeddings, heads, sublayers and biases.

    Args:
        model: The model of the trace.
        trace: A complete trace, without edits other than attention heads that are switched off.
        place: Position in the tokens of the last stack, from 0.
        token: Id of the token.
    """
    check_lens(model)
    side = model.named_stacks()[-1]
    if not side.stack.blocks[0].self_residual.adds:
        raise InputError("model.residual = false: without residual connections, a logit is not a sum of parts")
    logits = trace["logits"].values
    for name, number, size in (("position", place, logits.shape[0]), ("token", token, logits.shape[1])):
        if not 0 <= number < size:
            raise InputError(f"{name} {number}: must be from 0 to {size - 1}")
    parts = tuple(Walk(model, side, trace, place).parts(token))[::-1]
    logit = float(logits[place, token])
    return Attribution(place, token, logit, parts, sum(part.value for part in parts) - logit)


class Walk:
    """Backward walk from a logit to the embeddings, which yields the parts of direct logit attribution.

    Attributes:
        direction: Gradient of the logit with respect to the residual stream at the current point of the walk, with
            frozen norms and gates.
    """

    direction: Float[Tensor, " D"]

    def __init__(self, model: Any, side: NamedStack, trace: Trace, place: int) -> None:
        self.model, self.side, self.trace, self.place = model, side, trace, place

    def parts(self, token: int) -> Iterator[Part]:
        """Yield all parts of the logit of a token, from the output layer back to the embeddings."""
        output, stack, name = self.model.output, self.side.stack, self.side.name
        self.direction = exact(output.weight[token])
        if output.bias is not None:
            yield Part("output", "bias", float(output.bias[token]))
        if transform := self.model.head_transform():
            yield from self._transform(transform)
        yield from self._norm(name, stack.norm, self._at(f"{name}.{len(stack.blocks) - 1}.ffn.resid"))
        for number in reversed(range(len(stack.blocks))):
            block = dict(stack.blocks[number].named_children())
            for short, (sublayer, residual) in reversed(SUBLAYERS.items()):
                if sublayer in block:
                    yield from self._sublayer(f"{name}.{number}.{short}", block[sublayer], block[residual])
        line = self.side.sequence
        yield from self._norm(line, stack.embedding_norm, self._at(f"{line}.sum"))
        yield Part(line, "position", float(self.direction @ self._at(f"{line}.pos")))
        yield Part(line, "token", float(self.direction @ self._at(f"{line}.tok")))

    def _at(self, name: str) -> Tensor:
        """Return a recorded tensor at the position of the logit, with all of its heads if it has any."""
        values = exact(torch.from_numpy(self.trace[name].values))
        return values[:, self.place] if self.trace.axes[name][0].name == "head" else values[self.place]

    def _sublayer(self, name: str, sublayer: Any, residual: nn.Module) -> Iterator[Part]:
        if isinstance(residual, PostNorm):
            yield from self._norm(name, residual.norm, self._at(f"{name}.in") + self._at(f"{name}.out"))
        if isinstance(sublayer, MixtureOfExperts):  # each token has other last matrices
            yield Part(name, "hidden", float(self.direction @ self._at(f"{name}.out")))
            return
        # The last matrix W of the sublayer is linear: the direction before it is W^T times the direction after it.
        last = sublayer.out if isinstance(sublayer, Attention) else sublayer.down
        if last.bias is not None:
            yield Part(name, "bias", float(self.direction @ exact(last.bias)))
        weights = self.direction @ exact(last.weight)
        if isinstance(sublayer, Attention):
            # A matrix times concatenated heads is a sum over heads: (H U,) -> (H, U), times their outputs (H, U),
            # summed to (H,).
            values = (weights.unflatten(0, (sublayer.heads, -1)) * self._at(f"{name}.z")).sum(1).tolist()
            yield from (Part(name, "head", values[head], head) for head in reversed(range(sublayer.heads)))
        else:
            yield Part(name, "hidden", float(weights @ self._at(f"{name}.h")))

    def _norm(self, source: str, norm: Any, inputs: Float[Tensor, " D"]) -> Iterator[Part]:
        """Move the direction back through a norm with a frozen scale; yield the part of the norm's bias."""
        if isinstance(norm, nn.Identity):
            return
        if getattr(norm, "bias", None) is not None:
            yield Part(source, "norm", float(self.direction @ exact(norm.bias)))
        # y = w (x - mean(x)) / s + b: with s frozen, the gradient of x is g w / s, without its mean.
        direction = self.direction * exact(norm.weight)
        if isinstance(norm, nn.LayerNorm):  # nn.RMSNorm does not subtract the mean
            direction, inputs = direction - direction.mean(), inputs - inputs.mean()
        self.direction = direction / (inputs.square().mean() + norm.eps).sqrt()

    def _transform(self, transform: Any) -> Iterator[Part]:
        """Move the direction back through norm(GELU(x W + b)) of BERT's head, with frozen scale and gates."""
        dense = transform.dense
        inner = exact(dense.weight) @ self._at(f"{self.side.name}.norm") + exact(dense.bias)
        # GELU(x) = x Phi(x), with the normal distribution function Phi: linear in x if Phi(x) is frozen.
        gate = torch.special.ndtr(inner)
        yield from self._norm("transform", transform.norm, inner * gate)
        self.direction = self.direction * gate
        yield Part("transform", "bias", float(self.direction @ exact(dense.bias)))
        self.direction = self.direction @ exact(dense.weight)


def exact(x: Tensor) -> Tensor:
    """Convert a tensor to float64 on the CPU, so that only the model's own rounding errors remain."""
    return x.detach().cpu().double()
