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


class Lanes:
    """Who sees whom in a search: a sentence's hypotheses stand side by side, each in a lane, and do not see each other.

    Tokens stay where they were read. A hypothesis that goes on from another takes over what that one sees, a row of a
    mask, instead of a copy of all that a model remembers of it.

    B sentences, W lanes of each, C tokens read in all lanes of a sentence, R = B x W rows.
    """

    def __init__(self, sentences: int, device: torch.device) -> None:
        self.seen = 0  # tokens before those of the present step
        self.mask: Bool[Tensor, "B W C"] = torch.ones(sentences, 1, 0, dtype=torch.bool, device=device)
        self.keys: Int[Tensor, "B C"] = torch.zeros(sentences, 0, dtype=torch.long, device=device)

    @property
    def width(self) -> int:
        """Lanes of a sentence."""
        return self.mask.size(1)

    @property
    def position(self) -> Int[Tensor, "B W"]:
        """Where the tokens of the present step stand."""
        return self.keys.new_full(self.mask.shape[:2], self.seen)

    def feed(self, positions: Positions, like: Tensor) -> View:
        """Let each lane read one more token; return what it sees in terms of attention, in the type of `like`."""
        own = torch.eye(self.width, dtype=torch.bool, device=self.mask.device).expand(len(self.mask), -1, -1)
        self.mask = torch.cat([self.mask, own], dim=2)
        self.keys = torch.cat([self.keys, self.position], dim=1)
        bias = positions.add_bias(additive(self.mask, like), self.position, self.keys)
        view = View(bias, positions.rotation(self.position))
        self.seen += 1
        return view

    def select(self, rows: Int[Tensor, " R2"]) -> Int[Tensor, " B2"]:
        """Row i goes on from what was row `rows[i]`; return the sentences that are left, in their new order.

        Rows that do not stand evenly by sentence become sentences of their own.
        """
        sentences = rows // self.width
        counts = sentences.unique_consecutive(return_counts=True)[1]
        width = int(counts[0]) if (counts == counts[0]).all() else 1
        self.mask = self.mask.flatten(0, 1)[rows].unflatten(0, (-1, width))
        self.keys = self.keys[sentences[::width]]
        return sentences[::width]

    def prune(self) -> Int[Tensor, "B C2"] | None:
        """The tokens that some lane still sees and perhaps a few others, if that leaves half of them; else None."""
        live = self.mask.any(1)
        most = int(live.sum(1).max())
        if 2 * most > live.size(1):
            return None
        columns = (~live).int().argsort(dim=1, stable=True)[:, :most]
        self.mask = self.mask.gather(2, columns[:, None].expand(-1, self.width, -1))
        self.keys = self.keys.gather(1, columns)
        return columns


def additive(mask: Bool[Tensor, " B #T S"], like: Tensor) -> Float[Tensor, "#B 1 #T S"]:
    """A mask as a term of the attention scores."""
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(~mask, HIDDEN)[:, None]
