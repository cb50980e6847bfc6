"""What a head does, in numbers: how widely it looks, and at what (Clark et al. 2019; Voita et al. 2019).

H heads, T queries, S keys.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Measure = Callable[[Tensor], Tensor]


def entropy(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """The mean entropy of a query's attention, in nats: 0 for one key, log S for all keys alike."""
    return torch.special.entr(weights).sum(-1).mean(-1)


def offset(weights: Float[Tensor, "H T S"], distance: int) -> Float[Tensor, " H"]:
    """The mean weight on the key `distance` places after the query, over the queries that have one; 0 without any."""
    beside = weights.diagonal(distance, -2, -1)
    return beside.sum(-1) / max(1, beside.size(-1))


def itself(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """The mean weight on the query's own place."""
    return offset(weights, 0)


def previous(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """The mean weight on the token before."""
    return offset(weights, -1)


def following(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """The mean weight on the token after; 0 where that cannot be seen."""
    return offset(weights, 1)


def first(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """The mean weight on the first key, where heads look that find nothing (Xiao et al. 2024)."""
    return weights[..., 0].mean(-1)


def last(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """The mean weight on the last key, which is <eos> where there is one."""
    return weights[..., -1].mean(-1)


ANYWHERE: dict[str, Measure] = {"entropy": entropy, "first": first, "last": last}
MEASURES: dict[str, dict[str, Measure]] = {
    "self": ANYWHERE | {"itself": itself, "previous": previous, "following": following},
    "cross": ANYWHERE,
}
