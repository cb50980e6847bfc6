"""Logit lens (nostalgebraist 2020): token predictions from the residual stream after each block of a model.

L blocks, T tokens, K best tokens, D model, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.decode.translator import evaluating
from heedful.errors import InputError
from heedful.inspector.capture.taps import TappedStack, sides
from heedful.inspector.capture.trace import Trace
from heedful.models import EncoderDecoder, LanguageModel, MaskedLanguageModel


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
def lens(model: nn.Module, seen: Trace, count: int = 10) -> Lens:
    """Compute the logit lens from a trace: token predictions from the residual stream after each block.

    Args:
        model: the model of the trace.
        seen: a trace that holds the residual stream after each block, "*.ffn.resid".
        count: number of likeliest tokens to keep for each block and position.

    Raises:
        InputError: the model predicts no tokens.
    """
    side = sides(model)[-1]
    project = projection(model, side)
    device = next(model.parameters()).device
    streams = [seen[f"{side.name}.{layer}.ffn.resid"].values for layer in range(len(side.stack.blocks))]
    with evaluating(model):
        log_probs = torch.stack([project(torch.from_numpy(x).to(device)).log_softmax(-1) for x in streams])
    best, tokens = log_probs.topk(count)
    last = tokens[-1, :, 0].expand(len(streams), -1)[..., None]
    last_log_probs = log_probs.gather(-1, last)
    rank = (log_probs > last_log_probs).sum(-1)
    entropy = torch.special.entr(log_probs.exp()).sum(-1)
    return Lens(*(x.cpu().numpy() for x in (tokens, best, entropy, rank, last_log_probs[..., 0])))


def speaks(model: nn.Module) -> bool:
    """True if a model predicts tokens: an encoder-decoder, a language model or a masked language model."""
    return isinstance(model, EncoderDecoder | LanguageModel | MaskedLanguageModel)


def projection(model: Any, side: TappedStack) -> Callable[[Tensor], Tensor]:
    """Return the function that maps the residual stream to logits: final norm, head transform and output layer.

    Raises:
        InputError: the model predicts no tokens.
    """
    if not speaks(model):
        raise InputError(f"a {type(model).__name__} says no tokens, so that there is nothing to see through a lens")
    transform = model.transform if isinstance(model, MaskedLanguageModel) else nn.Identity()
    return lambda stream: model.output(transform(side.stack.norm(stream)))
