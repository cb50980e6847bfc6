"""KV cache of self-attention: keys and values of previous tokens, so that a decoding step projects one token only.

B batch, S tokens so far, T new tokens, G key and value heads, K key size, U value size.
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]  # (B G S K) and (B G S U)


class NoCache:
    """KV cache that stores nothing, for training, where all tokens are processed at once."""

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        """Return the keys and values of the new tokens, without any others."""
        return keys, values


class KVCache:
    """KV cache of one block: keys and values of its self-attention during decoding.

    The buffers double when full, so that a step need not copy all previous tokens.
    """

    def __init__(self) -> None:
        self.length = 0
        self.buffers: list[Tensor] = []

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        """Append the keys and values of new tokens; return the keys and values of all tokens so far."""
        # A token never changes the keys of those before it: causal attention makes them worth keeping.
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
        """Keep, reorder or repeat the rows of the batch; with beam lanes a row is a sentence."""
        # Copied without the free part of the buffers, which the next update adds again.
        self.buffers = [buffer[:, :, : self.length][rows] for buffer in self.buffers]

    def prune(self, columns: Int[Tensor, "B C"]) -> None:
        """Keep only the keys and values of some tokens of each row, given by their columns."""
        self.length = columns.size(1)
        index = columns[:, None, :, None]
        self.buffers = [x.gather(2, index.expand(-1, x.size(1), -1, x.size(3))) for x in self.buffers]


NO_CACHE = NoCache()
Cache = KVCache | NoCache
