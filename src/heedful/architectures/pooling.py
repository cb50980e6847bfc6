"""Pooling: one vector for a whole text from the hidden states of its tokens.

B batch, S tokens, D model.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.schema import TextModelConfig

Pooling = Callable[[Tensor, Tensor], Tensor]  # hidden states (B S D) and padding mask (B S) to (B D)


def first(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the hidden state of the first real token, BERT's [CLS]."""
    return states[torch.arange(len(states), device=states.device), padding_mask.int().argmax(1)]


def mean(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the mean hidden state of all real tokens (Reimers & Gurevych 2019, section 3)."""
    real = padding_mask[:, :, None].to(states.dtype)
    return (states * real).sum(1) / real.sum(1)


def last(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the hidden state of the last real token, which in GPT attends to all (Radford et al. 2018)."""
    places = torch.arange(padding_mask.size(1), device=padding_mask.device)
    return states[torch.arange(len(states), device=states.device), (padding_mask * places).argmax(1)]


def maximum(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the largest value of each dimension over all real tokens (Collobert et al. 2011, section 3.3)."""
    return states.masked_fill(~padding_mask[:, :, None], -torch.inf).amax(1)


def total(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the sum of the hidden states of all real tokens."""
    return (states * padding_mask[:, :, None]).sum(1)


POOLINGS: dict[str, Pooling] = {"first": first, "mean": mean, "max": maximum, "last": last, "sum": total}


class Pooler(nn.Module):
    """Pooler of BERT: the vector of a text, tanh(pool(states) W + b)."""

    parameter_kind = "pooler"

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        self.pool = POOLINGS[pooling]
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """Compute the vector of each text from the hidden states of its tokens."""
        return torch.tanh(self.dense(self.pool(states, padding_mask)))


class PlainPooler(nn.Module):
    """Pooler without parameters: the vector of a text is its pooled hidden state."""

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        del config
        self.pool = POOLINGS[pooling]

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """Compute the vector of each text from the hidden states of its tokens."""
        return self.pool(states, padding_mask)


class AttentionPooler(nn.Module):
    """Pooler with attention: the mean of the hidden states, weighted by their dot product with one learned query.

    It learns what to leave out, such as silence (Safari et al. 2020, "Self-attention encoding and pooling for speaker
    recognition", section 2).
    """

    parameter_kind = "pooler"

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        del pooling
        self.query = nn.Parameter(torch.zeros(config.hidden_size))  # at first all count alike

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        """Compute the vector of each text from the hidden states of its tokens."""
        scores = (states @ self.query).masked_fill(~padding_mask, -torch.inf)
        return (scores.softmax(1)[:, None] @ states).squeeze(1)


POOLERS: dict[str, type[Pooler | AttentionPooler | PlainPooler]] = {
    "dense": Pooler,
    "attention": AttentionPooler,
    "none": PlainPooler,
}
