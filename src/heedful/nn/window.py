"""Sliding-window self-attention over long texts in blocks, with memory linear in their length.

The definition is the mask `heedful.nn.masks.window_mask`, as in Mistral (Jiang et al. 2023, section 2) for causal
stacks and as in Longformer (Beltagy et al. 2020, section 3.1) for others. Here, the queries are cut into blocks, each
with only the keys in the windows of its queries. Blocks take the place of rows of a batch, so that the kernels stay the
same.

B batch, T queries, S keys, D model, H query heads, G key and value heads, K key size, N blocks of L queries and C keys,
M = B N.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from heedful.nn.attention import Attention
from heedful.nn.masks import AttentionMask, BiasedInputs, attention_bias
from heedful.nn.positions import Positions

MIN_BLOCK = 64  # queries, so that a narrow window is not computed in many tiny products


@dataclass(frozen=True)
class Blocks:
    """N blocks of L queries, each with the C keys from the first window of its queries to the last.

    The keys are the last S of a text, and the queries the last T of the keys.
    """

    queries: int  # T
    keys: int  # S
    window: int
    causal: bool

    @property
    def size(self) -> int:
        """Queries of a block, L: a window, with which a block has about twice or three times as many keys."""
        return max(self.window, MIN_BLOCK)

    @property
    def context(self) -> int:
        """Keys of a block, C."""
        return self.size + (1 if self.causal else 2) * (self.window - 1)

    @property
    def count(self) -> int:
        return -(-self.queries // self.size)

    def of_keys(self, x: Shaped[Tensor, "B S *rest"]) -> Shaped[Tensor, "B N C *rest"]:
        """Cut keys into overlapping blocks, after adding zeros before the first and after the last key."""
        before = self.window - 1 - (self.keys - self.queries)
        after = (self.count - 1) * self.size + self.context - before - self.keys
        x = F.pad(x, (0, 0) * (x.dim() - 2) + (before, after))
        return x.unfold(1, self.context, self.size).movedim(-1, 2)

    def of_queries(self, x: Shaped[Tensor, "B T *rest"]) -> Shaped[Tensor, "B N L *rest"]:
        after = self.count * self.size - self.queries
        return F.pad(x, (0, 0) * (x.dim() - 2) + (0, after)).unflatten(1, (self.count, self.size))

    def join(self, y: Float[Tensor, "M L D"]) -> Float[Tensor, "B T D"]:
        """Join the outputs of blocks to rows, without the outputs of added queries."""
        return y.unflatten(0, (-1, self.count)).flatten(1, 2)[:, : self.queries]

    def allowed(self, mask: AttentionMask) -> Bool[Tensor, "M L C"]:
        """Compute the part of the full mask that each block needs."""
        band = torch.ones(self.size, self.context, dtype=torch.bool, device=mask.padding_mask.device)
        # The window of query i of a block begins at key i of the block.
        band = band.triu().tril(self.context - self.size)
        allowed = band & self.of_keys(mask.padding_mask[:, -self.keys :])[:, :, None]
        if mask.documents is not None:
            of_queries = self.of_queries(mask.documents[:, -self.queries :])
            allowed = allowed & (of_queries[..., None] == self.of_keys(mask.documents[:, -self.keys :])[:, :, None])
        return allowed.flatten(0, 1)


@dataclass(frozen=True)
class WindowInputs(BiasedInputs):
    """Inputs of self-attention in blocks; the attention bias is (M #H L C)."""

    blocks: Blocks

    def attend(self, attention: Attention, queries: Tensor, keys: Tensor, values: Tensor) -> Float[Tensor, "B T D"]:
        """Attend from each block of queries to the keys of its windows, as if each block were a row of a batch."""
        blocks = self.blocks

        def rows(x: Float[Tensor, "B G S K"], cut: Callable[[Tensor], Tensor]) -> Float[Tensor, "M G C K"]:
            return cut(x.transpose(1, 2)).flatten(0, 1).transpose(1, 2)

        contexts = (rows(x, blocks.of_keys) for x in (keys, values))
        return blocks.join(attention(rows(queries, blocks.of_queries), *contexts, self.attention_bias))


def window_inputs(mask: AttentionMask, positions: Positions, like: Tensor, window: int) -> BiasedInputs:
    """Compute the inputs of windowed self-attention: in blocks if a block has fewer keys than the text has tokens."""
    queries = mask.query_positions.size(1)
    blocks = Blocks(queries, min(mask.length, queries + window - 1), window, mask.causal)
    if queries <= blocks.context:
        return mask.inputs(positions, like, window)
    of_queries = blocks.of_queries(mask.query_positions).flatten(0, 1)
    of_keys = blocks.of_keys(mask.key_positions[:, -blocks.keys :]).flatten(0, 1)
    bias = positions.add_bias(attention_bias(blocks.allowed(mask), like), of_queries, of_keys)
    return WindowInputs(bias, positions.rotation(mask.query_positions), blocks)
