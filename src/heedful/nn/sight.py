"""Who sees whom in self-attention, in terms of tokens and in terms of scores.

B batch, T queries, S keys, D model, H heads.
"""

from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.nn.attention import HIDDEN
from heedful.nn.positions import Positions, Rotation


@dataclass(frozen=True)
class View:
    """What every block of a stack hands to its self-attention."""

    bias: Float[Tensor, "#B #H #T S"]  # of the scores; minus infinity where a query may not look
    rotate: Rotation  # of queries and keys


class Sight:
    """Who sees whom, and from where: the queries are the last of the keys."""

    def __init__(self, keep: Bool[Tensor, "B S"], queries: int, *, causal: bool) -> None:
        self.length = keep.size(1)
        self.keys: Int[Tensor, "B S"] = (keep.cumsum(-1) - 1).clamp(min=0)  # padding does not count
        self.position: Int[Tensor, "B T"] = self.keys[:, -queries:]
        self.mask: Bool[Tensor, " B #T S"] = keep[:, None, :]
        if causal:
            past = torch.ones(queries, self.length, dtype=torch.bool, device=keep.device)
            self.mask = self.mask & past.tril(self.length - queries)

    def within(self, documents: Int[Tensor, "B S"]) -> "Sight":
        """The same, but a token sees its own document only, and positions count from the document's beginning.

        Args:
            documents: the number of the document of each key; the tokens of a document stand together.
        """
        begins = torch.ones_like(documents, dtype=torch.bool)
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        narrow = copy(self)
        narrow.keys = self.keys - self.keys.masked_fill(~begins, 0).cummax(-1).values
        narrow.position = narrow.keys[:, -self.position.size(1) :]
        own = documents[:, -self.position.size(1) :, None] == documents[:, None, :]
        narrow.mask = self.mask & own
        return narrow

    def view(self, positions: Positions, like: Tensor) -> View:
        """The same in terms of attention, in the type of `like`."""
        bias = positions.add_bias(additive(self.mask, like), self.position, self.keys)
        return View(bias, positions.rotation(self.position))


def additive(mask: Bool[Tensor, " B #T S"], like: Tensor) -> Float[Tensor, "#B 1 #T S"]:
    """A mask as a term of the attention scores."""
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(~mask, HIDDEN)[:, None]
