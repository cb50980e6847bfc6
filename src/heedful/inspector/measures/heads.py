"""Measures of attention heads: entropy, mean weight on certain keys (Clark et al. 2019; Voita et al. 2019), distance.

H heads, T queries, S keys, P coordinates.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Measure = Callable[[Tensor], Tensor]


def entropy(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean entropy of the attention weights of a query, in nats: 0 for one key, log S for uniform attention."""
    return torch.special.entr(weights).sum(-1).mean(-1)


def offset(weights: Float[Tensor, "H T S"], distance: int) -> Float[Tensor, " H"]:
    """Mean attention weight on the key `distance` positions after the query; negative distances look back.

    The mean is over the queries that have such a key; 0 if no query has one.
    """
    beside = weights.diagonal(distance, -2, -1)
    return beside.sum(-1) / max(1, beside.size(-1))


def itself(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the query's own position."""
    return offset(weights, 0)


def previous(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the token before the query."""
    return offset(weights, -1)


def following(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the token after the query; 0 under a causal mask."""
    return offset(weights, 1)


def first(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the first key, which often serves as an attention sink (Xiao et al. 2024)."""
    return weights[..., 0].mean(-1)


def last(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the last key, which is <eos> if the sequence has one."""
    return weights[..., -1].mean(-1)


def distance(weights: Float[Tensor, "H S S"], places: Float[Tensor, "S P"]) -> Float[Tensor, " H"]:
    """Mean distance from a query to what it attends to, as a share of that of even attention.

    Near 0 for a head that looks at the surroundings of each patch or frame, 1 for one that looks at the whole; in
    pixels, this is figure 7 of Dosovitskiy et al. 2021. Class tokens count neither as queries nor as keys: their place
    is NaN. It is 0 where there is one place alone.
    """
    real = ~places.isnan().any(-1)
    apart = torch.cdist(places[real], places[real])
    weights = weights[:, real][..., real]
    reached = (weights * apart).sum((-2, -1)) / weights.sum((-2, -1)).clamp(min=torch.finfo(weights.dtype).tiny)
    return reached / apart.mean().clamp(min=torch.finfo(apart.dtype).tiny)


ANYWHERE: dict[str, Measure] = {"entropy": entropy, "first": first, "last": last}
MEASURES: dict[str, dict[str, Measure]] = {
    "self": ANYWHERE | {"itself": itself, "previous": previous, "following": following},
    "cross": ANYWHERE,
}
