"""Attention masks: the causal mask, the padding mask, documents packed into one sequence, and the lanes of a beam.

A mask is True where a query may attend. The attention bias is its additive form, to which positions may add: 0 where a
query may attend, a large negative number elsewhere. A padding mask is True for real tokens, like Hugging Face's
`attention_mask` and unlike torch's `key_padding_mask`.

B batch, T queries, S keys, D model, H heads.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.nn.attention import Attention, masked_score
from heedful.nn.positions import Positions, Rotation


class SelfAttentionInputs(ABC):
    """Inputs of self-attention that are the same in all blocks of a stack."""

    rotate: Rotation  # rotates queries and keys by their positions

    @abstractmethod
    def attend(self, attention: Attention, queries: Tensor, keys: Tensor, values: Tensor) -> Float[Tensor, "B T D"]:
        """Attend from the projected queries of a block to the keys and values that its cache returns."""


@dataclass(frozen=True)
class BiasedInputs(SelfAttentionInputs):
    """Inputs with an attention bias, which has a number for each query and key."""

    attention_bias: Float[Tensor, "#B #H #T S"]  # added to the attention scores before the softmax
    rotate: Rotation

    def attend(self, attention: Attention, queries: Tensor, keys: Tensor, values: Tensor) -> Float[Tensor, "B T D"]:
        return attention(queries, keys, values, self.attention_bias)


class AttentionMask:
    """Self-attention mask and token positions of a padded batch; the queries are the last T of the S keys.

    Args:
        padding_mask: True for real tokens.
        queries: The number of queries, T.
        causal: True if a query attends only to itself and earlier keys.
    """

    def __init__(self, padding_mask: Bool[Tensor, "B S"], queries: int, *, causal: bool) -> None:
        self.length = padding_mask.size(1)  # the number of keys, S
        self.padding_mask = padding_mask
        # Without a causal mask all queries attend to the same keys: one row is broadcast.
        self.real_keys: Bool[Tensor, "B 1 S"] = padding_mask[:, None, :]
        self.causal = causal
        self.documents: Int[Tensor, "B S"] | None = None
        # Positions count real tokens from 0, so that padding on the left changes nothing. The clamp gives this padding
        # position 0 instead of -1, which is not a row of a position table.
        self.key_positions: Int[Tensor, "B S"] = (padding_mask.cumsum(-1) - 1).clamp(min=0)
        self.query_positions: Int[Tensor, "B T"] = self.key_positions[:, -queries:]

    @property
    def allowed(self) -> Bool[Tensor, " B #T S"]:
        """The mask of all queries and keys, computed only when it is read: long texts can do without it."""
        queries = self.query_positions.size(1)
        allowed = self.real_keys
        if self.causal:
            allowed = allowed & causal_mask(queries, self.length, allowed.device)
        if self.documents is not None:
            # Tokens do not attend across documents: the loss of a packed row equals that of its documents in separate
            # rows.
            allowed = allowed & (self.documents[:, -queries:, None] == self.documents[:, None, :])
        return allowed

    def within(self, documents: Int[Tensor, "B S"]) -> "AttentionMask":
        """Create the mask of packed documents: tokens attend within their document, in which positions start from 0.

        Args:
            documents: The index of the document of each key; the tokens of a document are contiguous.
        """
        begins = torch.ones_like(documents, dtype=torch.bool)  # B S
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        packed = copy(self)
        packed.documents = documents
        # Subtract the position of the first token of each document from the positions of its tokens.
        packed.key_positions = self.key_positions - self.key_positions.masked_fill(~begins, 0).cummax(-1).values
        packed.query_positions = packed.key_positions[:, -self.query_positions.size(1) :]
        return packed

    def inputs(self, positions: Positions, like: Tensor, window: int | None = None) -> BiasedInputs:
        """Compute the attention bias, in the dtype of `like`, and the rotation for the blocks of a stack.

        Args:
            positions: The position scheme of the stack.
            like: A tensor of the dtype and device of the bias.
            window: With a `model.window`, the keys are those that `KVCache` returns: the window of the first query
                and the keys after it.
        """
        allowed, key_positions = self.allowed, self.key_positions
        if window is not None:
            queries = self.query_positions.size(1)
            allowed = allowed & window_mask(queries, self.length, window, allowed.device)
            keys = min(self.length, queries + window - 1)
            allowed, key_positions = allowed[..., -keys:], key_positions[:, -keys:]
        bias = positions.add_bias(attention_bias(allowed, like), self.query_positions, key_positions)
        # New keys have the positions of the queries; the keys in a cache are already rotated.
        return BiasedInputs(bias, positions.rotation(self.query_positions))


class BeamLanes:
    """Tree attention mask of a beam search, in which each hypothesis of a sentence is a lane.

    The keys and values of a token stay in place in the KV cache. When a hypothesis is continued, its continuations copy
    its row of the mask, so that each of them attends only to its own ancestors.

    B sentences, W lanes of a sentence, C tokens (columns) of all lanes of a sentence so far, R = B x W rows.
    """

    def __init__(self, sentences: int, device: torch.device) -> None:
        self.length = 0  # number of tokens of each hypothesis before this step
        self.allowed: Bool[Tensor, "B W C"] = torch.ones(sentences, 1, 0, dtype=torch.bool, device=device)
        self.key_positions: Int[Tensor, "B C"] = torch.zeros(sentences, 0, dtype=torch.long, device=device)

    @property
    def width(self) -> int:
        return self.allowed.size(1)

    @property
    def query_positions(self) -> Int[Tensor, "B W"]:
        return self.key_positions.new_full(self.allowed.shape[:2], self.length)

    def append(self, positions: Positions, like: Tensor, window: int | None = None) -> BiasedInputs:
        """Add one token to each lane; return the attention bias, in the dtype of `like`, and the rotation."""
        # The W new tokens of a sentence are W columns, each visible only to its lane.
        new = torch.eye(self.width, dtype=torch.bool, device=self.allowed.device).expand(len(self.allowed), -1, -1)
        self.allowed = torch.cat([self.allowed, new], dim=2)
        self.key_positions = torch.cat([self.key_positions, self.query_positions], dim=1)
        if window is not None:
            # What has left the window is never seen again, so that `prune` drops it.
            self.allowed = self.allowed & (self.key_positions > self.length - window)[:, None, :]
        bias = positions.add_bias(attention_bias(self.allowed, like), self.query_positions, self.key_positions)
        inputs = BiasedInputs(bias, positions.rotation(self.query_positions))
        self.length += 1
        return inputs

    def select(self, rows: Int[Tensor, " R2"]) -> Int[Tensor, " B2"]:
        """Let row i continue the previous row `rows[i]`; return the sentences that remain, in their new order.

        If sentences have different numbers of rows, each row becomes a sentence by itself.
        """
        sentences = rows // self.width  # row = sentence x W + lane
        counts = sentences.unique_consecutive(return_counts=True)[1]
        width = int(counts[0]) if (counts == counts[0]).all() else 1
        # A hypothesis inherits the row of its parent, and with it all tokens that the parent attends to.
        self.allowed = self.allowed.flatten(0, 1)[rows].unflatten(0, (-1, width))
        self.key_positions = self.key_positions[sentences[::width]]
        return sentences[::width]

    def prune(self) -> Int[Tensor, "B C2"] | None:
        """Drop the tokens that no lane attends to any more, if they are at least half of the tokens of every sentence.

        Return the columns to keep in the KV caches, or None if nothing was dropped.
        """
        live = self.allowed.any(1)  # B C
        size = int(live.sum(1).max())  # all sentences keep as many columns as the one with the most live tokens
        if 2 * size > live.size(1):
            return None
        # Live columns come first, in order; a sentence with fewer keeps dead ones, which stay masked.
        columns = (~live).int().argsort(dim=1, stable=True)[:, :size]
        self.allowed = self.allowed.gather(2, columns[:, None].expand(-1, self.width, -1))
        self.key_positions = self.key_positions.gather(1, columns)
        return columns


def causal_mask(queries: int, keys: int, device: torch.device) -> Bool[Tensor, "T S"]:
    """Create a causal mask, True where a key is not after the query; the queries are the last positions of the keys."""
    # Query t is key S - T + t: the diagonal moves right by the S - T keys before the first query.
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def window_mask(queries: int, keys: int, window: int, device: torch.device) -> Bool[Tensor, "T S"]:
    """Create the mask of a sliding window: True where a key is less than `window` tokens before or after the query.

    The distance is that in the row, whose padding is at its ends.
    """
    band = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return band.tril(keys - queries + window - 1).triu(keys - queries - window + 1)


def attention_bias(allowed: Bool[Tensor, " B #T S"], like: Tensor) -> Float[Tensor, "#B 1 #T S"]:
    """Convert a mask to an additive attention bias: 0 where True, a large negative number elsewhere."""
    bias = torch.zeros(allowed.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(~allowed, masked_score(like))[:, None]
