"""The KV cache of self-attention: keys and values of the tokens read so far, so that a step projects one token only.

B batch, S tokens so far, T new tokens, G key and value heads, K key size, U value size.
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]  # (B G S K) and (B G S U)


class NoCache:
    """The cache of training: every token is new, and nothing is remembered."""

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        """Return the keys and values as they are."""
        return keys, values


class KVCache:
    """The keys and values of one block's self-attention while decoding.

    The buffers double when full, so that a step costs no copy of the past.
    """

    def __init__(self) -> None:
        self.length = 0
        self.buffers: list[Tensor] = []

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        """Append the keys and values of new tokens; return those of all tokens so far."""
        new = (keys, values)
        end = self.length + keys.size(2)
        if not self.buffers:
            self.buffers = [x[:, :, :0] for x in new]
        if end > self.buffers[0].size(2):
            self.buffers = [F.pad(x[:, :, : self.length], (0, 0, 0, 2 * end - self.length)) for x in self.buffers]
        for buffer, x in zip(self.buffers, new, strict=True):
            buffer[:, :, self.length : end] = x
        self.length = end
        all_keys, all_values = (buffer[:, :, :end] for buffer in self.buffers)
        return all_keys, all_values

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keep, reorder or repeat rows of the batch."""
        self.buffers = [buffer[:, :, : self.length][rows] for buffer in self.buffers]

    def prune(self, columns: Int[Tensor, "B C"]) -> None:
        """Forget the keys and values of all but some tokens of each row, given by their columns."""
        self.length = columns.size(1)
        index = columns[:, None, :, None]
        self.buffers = [x.gather(2, index.expand(-1, x.size(1), -1, x.size(3))) for x in self.buffers]


NO_CACHE = NoCache()
Cache = KVCache | NoCache
