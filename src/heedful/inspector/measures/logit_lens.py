"""Logit lens (nostalgebraist 2020): token predictions from the residual stream after each block of a model.

L blocks, T tokens, K best tokens, D model, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.architectures import Model
from heedful.architectures.model import evaluating
from heedful.errors import InputError
from heedful.inspector.capture.trace import Trace


@dataclass(frozen=True)
class Lens:
    """Logit lens: token predictions after each block and at each position; the last block gives the model's own.

    Attributes:
        tokens: ids of the likeliest tokens, best first.
        log_probs: log-probabilities of `tokens`.
        entropy: entropy of the distribution over the whole vocabulary, in nats.
        rank: rank, from 0, of the token that is likeliest after the last block.
        last_log_probs: log-probability of the token that is likeliest after the last block.
    """

    tokens: Int[np.ndarray, "L T K"]
    log_probs: Float[np.ndarray, "L T K"]
    entropy: Float[np.ndarray, "L T"]
    rank: Int[np.ndarray, "L T"]
    last_log_probs: Float[np.ndarray, "L T"]


@torch.no_grad()
def lens(model: Model, seen: Trace, count: int = 10) -> Lens:
    """Compute the logit lens from a trace: token predictions from the residual stream after each block.

    Args:
        model: the model of the trace.
        seen: a trace that holds the residual stream after each block, "*.ffn.resid".
        count: number of likeliest tokens to keep for each block and position.

    Raises:
        InputError: the model predicts no tokens.
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
    """True if the logit lens can look through a model: it predicts tokens from a stack of blocks."""
    return model.predicts_tokens and bool(model.named_stacks())


def check_speaks(model: Model) -> None:
    """Refuse a model that the logit lens cannot look through.

    Raises:
        InputError: the model predicts no tokens, or is no Transformer.
    """
    if not speaks(model):
        raise InputError(f"a {type(model).__name__} says no tokens from a stack of blocks: there is nothing to look at")
