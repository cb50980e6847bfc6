"""One vector for a whole text.

B batch, S tokens, D model.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.schema import ModelConfig

Pooling = Callable[[Tensor, Tensor], Tensor]  # states (B S D) and which are real (B S) to (B D)


def first(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """The state of the first real token, BERT's [CLS]."""
    return states[torch.arange(len(states), device=states.device), padding_mask.int().argmax(1)]


def mean(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """The mean state of all real tokens (Reimers & Gurevych 2019, section 3)."""
    real = padding_mask[:, :, None].to(states.dtype)
    return (states * real).sum(1) / real.sum(1)


def last(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """The state of the last real token, the only one in a GPT that has seen the whole text (Radford et al. 2018)."""
    places = torch.arange(padding_mask.size(1), device=padding_mask.device)
    return states[torch.arange(len(states), device=states.device), (padding_mask * places).argmax(1)]


POOLINGS: dict[str, Pooling] = {"first": first, "mean": mean, "last": last}


class Pooler(nn.Module):
    """tanh(pool(states) W + b): BERT's vector of a text."""

    def __init__(self, config: ModelConfig, pooling: str) -> None:
        super().__init__()
        self.pool = POOLINGS[pooling]
        self.dense = nn.Linear(config.d_model, config.d_model)

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """The vector of each text."""
        return torch.tanh(self.dense(self.pool(states, padding_mask)))
