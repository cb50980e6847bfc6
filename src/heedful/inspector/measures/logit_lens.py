"""The logit lens (nostalgebraist 2020): what a model would say if it stopped after each of its blocks.

L blocks, T tokens, K best tokens, D model, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.decode.translator import evaluating
from heedful.errors import InputError
from heedful.inspector.capture.trace import Trace
from heedful.models import Model


@dataclass(frozen=True)
class Lens:
    """What would be said after each block; the last row is what the model says.

    Attributes:
        tokens: the likeliest ones, best first.
        log_probs: of these.
        entropy: of the whole distribution, in nats.
        rank: the place of the token that the last block takes to be likeliest, from 0.
        last_log_probs: of that token.
    """

    tokens: Int[np.ndarray, "L T K"]
    log_probs: Float[np.ndarray, "L T K"]
    entropy: Float[np.ndarray, "L T"]
    rank: Int[np.ndarray, "L T"]
    last_log_probs: Float[np.ndarray, "L T"]


@torch.no_grad()
def lens(model: Model, seen: Trace, count: int = 10) -> Lens:
    """Look through the lens at a trace.

    Args:
        model: that of the trace.
        seen: a trace that holds the stream after each block, "*.ffn.resid".
        count: how many tokens of each distribution.

    Raises:
        InputError: the model says no tokens.
    """
    check_speaks(model)
    side = model.named_stacks()[-1]
    device = next(model.parameters()).device
    streams = [
        torch.from_numpy(seen[f"{side.name}.{layer}.ffn.resid"].values) for layer in range(len(side.stack.blocks))
    ]
    with evaluating(model):
        log_probs = torch.stack([model.head(side.stack.norm(x.to(device))).log_softmax(-1) for x in streams])
    best, tokens = log_probs.topk(count)
    last = tokens[-1, :, 0].expand(len(streams), -1)[..., None]
    last_log_probs = log_probs.gather(-1, last)
    rank = (log_probs > last_log_probs).sum(-1)
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    return Lens(*(x.cpu().numpy() for x in (tokens, best, entropy, rank, last_log_probs[..., 0])))


def speaks(model: Model) -> bool:
    """True if the lens can look through a model: it predicts tokens, and from a stack of blocks."""
    return model.predicts_tokens and bool(model.named_stacks())


def check_speaks(model: Model) -> None:
    """Refuse a model that the lens cannot look through.

    Raises:
        InputError: the model predicts no tokens, or is no Transformer.
    """
    if not speaks(model):
        raise InputError(f"a {type(model).__name__} says no tokens from a stack of blocks: there is nothing to look at")
