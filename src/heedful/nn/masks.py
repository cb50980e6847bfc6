"""Attention masks: the causal mask, the padding mask, documents packed into one sequence, and the lanes of a beam.

A mask is True where a query may attend. The attention bias is its additive form, to which positions may add: 0 where a
query may attend, a very negative number elsewhere. A padding mask is True for real tokens, as in Hugging Face's
`attention_mask`; torch's `key_padding_mask` is the opposite. It comes with each batch: from `text.padding.pad` in
inference, from the `collate` of a task in training.

B batch, T queries, S keys, D model, H heads.
"""

from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.nn.attention import MASKED_SCORE
from heedful.nn.positions import Positions, Rotation


@dataclass(frozen=True)
class SelfAttentionInputs:
    """Inputs of self-attention that all blocks of a stack share."""

    attention_bias: Float[Tensor, "#B #H #T S"]  # added to the attention scores before the softmax
    rotate: Rotation  # rotates queries and keys by their positions


class AttentionMask:
    """Self-attention mask and token positions of a padded batch; the queries are the last T of the S keys.

    Args:
        padding_mask: True for real tokens.
        queries: the number of queries, T.
        causal: True if a query attends to no key after itself.
    """

    def __init__(self, padding_mask: Bool[Tensor, "B S"], queries: int, *, causal: bool) -> None:
        self.length = padding_mask.size(1)  # the number of keys, S
        self.padding_mask = padding_mask
        # Positions count real tokens from 0, so that padding on the left changes nothing.
        self.key_positions: Int[Tensor, "B S"] = (padding_mask.cumsum(-1) - 1).clamp(min=0)
        self.query_positions: Int[Tensor, "B T"] = self.key_positions[:, -queries:]
        # True where a query may attend to a key. Without a causal mask one row serves all queries.
        self.allowed: Bool[Tensor, " B #T S"] = padding_mask[:, None, :]
        if causal:
            self.allowed = self.allowed & causal_mask(queries, self.length, padding_mask.device)

    def within(self, documents: Int[Tensor, "B S"]) -> "AttentionMask":
        """Create the mask of packed documents: a token attends to its own document only, with positions from 0 in each.

        Args:
            documents: the number of the document of each key; the tokens of a document are contiguous.
        """
        begins = torch.ones_like(documents, dtype=torch.bool)  # B S
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        queries = self.query_positions.size(1)
        packed = copy(self)
        # The position of the last beginning up to a token is taken off.
        packed.key_positions = self.key_positions - self.key_positions.masked_fill(~begins, 0).cummax(-1).values
        packed.query_positions = packed.key_positions[:, -queries:]
        # Each document is read as if it were alone: the loss of a packed row is that of its documents in separate rows.
        packed.allowed = self.allowed & (documents[:, -queries:, None] == documents[:, None, :])
        return packed

    def inputs(self, positions: Positions, like: Tensor) -> SelfAttentionInputs:
        """Compute attention bias and rotation for the blocks of a stack, in the number format of `like`."""
        bias = positions.add_bias(attention_bias(self.allowed, like), self.query_positions, self.key_positions)
        # New keys are rotated by the positions of the queries, which are theirs; those in a cache are rotated already.
        return SelfAttentionInputs(bias, positions.rotation(self.query_positions))


class BeamLanes:
    """Tree attention mask of a beam search: the hypotheses of a sentence are side by side, each in its lane.

    The keys and values of a token are never moved. A hypothesis that continues another one copies its row of the mask,
    and so attends to its ancestors only, instead of copying all keys and values in the KV cache.

    B sentences, W lanes of each, C tokens read in all lanes of a sentence, R = B x W rows.
    """

    def __init__(self, sentences: int, device: torch.device) -> None:
        self.length = 0  # number of tokens of each hypothesis before the present step
        self.allowed: Bool[Tensor, "B W C"] = torch.ones(sentences, 1, 0, dtype=torch.bool, device=device)
        self.key_positions: Int[Tensor, "B C"] = torch.zeros(sentences, 0, dtype=torch.long, device=device)

    @property
    def width(self) -> int:
        """Number of lanes (hypotheses side by side) of each sentence at the present step of the beam search."""
        return self.allowed.size(1)

    @property
    def query_positions(self) -> Int[Tensor, "B W"]:
        """Positions of the tokens of the present step, from 0."""
        return self.key_positions.new_full(self.allowed.shape[:2], self.length)

    def append(self, positions: Positions, like: Tensor) -> SelfAttentionInputs:
        """Add one token to each lane; return attention bias and rotation in the number format of `like`."""
        # The W new tokens of a sentence are columns that only their lanes may see.
        own = torch.eye(self.width, dtype=torch.bool, device=self.allowed.device).expand(len(self.allowed), -1, -1)
        self.allowed = torch.cat([self.allowed, own], dim=2)
        self.key_positions = torch.cat([self.key_positions, self.query_positions], dim=1)
        bias = positions.add_bias(attention_bias(self.allowed, like), self.query_positions, self.key_positions)
        inputs = SelfAttentionInputs(bias, positions.rotation(self.query_positions))
        self.length += 1
        return inputs

    def select(self, rows: Int[Tensor, " R2"]) -> Int[Tensor, " B2"]:
        """Let row i continue the previous row `rows[i]`; return the sentences that are left, in their new order.

        If sentences have different numbers of rows, each row becomes a sentence by itself.
        """
        sentences = rows // self.width  # rows are numbered lane by lane, sentence by sentence
        counts = sentences.unique_consecutive(return_counts=True)[1]
        width = int(counts[0]) if (counts == counts[0]).all() else 1
        # A hypothesis takes over the row of the one that it continues, and so all that this one could see.
        self.allowed = self.allowed.flatten(0, 1)[rows].unflatten(0, (-1, width))
        self.key_positions = self.key_positions[sentences[::width]]
        return sentences[::width]

    def prune(self) -> Int[Tensor, "B C2"] | None:
        """Drop the tokens that no lane attends to any more, if they are at least half of all tokens.

        Return the columns that the KV caches keep, too; None if fewer than half could be dropped.
        """
        live = self.allowed.any(1)  # B C
        most = int(live.sum(1).max())  # sentences keep as many columns as the one with the most live tokens
        if 2 * most > live.size(1):
            return None
        # Live columns first, in their order; a sentence with fewer keeps some dead ones, which nobody sees.
        columns = (~live).int().argsort(dim=1, stable=True)[:, :most]
        self.allowed = self.allowed.gather(2, columns[:, None].expand(-1, self.width, -1))
        self.key_positions = self.key_positions.gather(1, columns)
        return columns


def causal_mask(queries: int, keys: int, device: torch.device) -> Bool[Tensor, "T S"]:
    """Causal mask: True where a key does not come after the query; the queries are the last of the keys."""
    # Query t is key number keys - queries + t: the diagonal moves right by the keys that came before the first query.
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def attention_bias(allowed: Bool[Tensor, " B #T S"], like: Tensor) -> Float[Tensor, "#B 1 #T S"]:
    """Convert a mask to an additive attention bias: 0 where True, a very negative number elsewhere."""
    return torch.zeros(allowed.shape, dtype=like.dtype, device=like.device).masked_fill_(~allowed, MASKED_SCORE)[
        :, None
    ]
