"""KV cache of self-attention: keys and values of previous tokens, so that a decoding step projects only new tokens.

B batch, S tokens so far, T new tokens, G key and value heads, K key size, U value size, R selected rows, C columns.
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]  # (B G S K) and (B G S U)


class NoCache:
    """KV cache without previous tokens, for training, where all tokens are processed at once."""

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        return keys, values


class KVCache:
    """KV cache of one block: keys and values of its self-attention during decoding.

    The buffers double when they are full, so that most steps do not copy the previous tokens.

    Args:
        window: With a `model.window`, tokens that no new query attends to are dropped.
    """

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.length = 0
        self.buffers: list[Tensor] = []

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        """Append the keys and values of new tokens; return those of all tokens so far, or in the windows of the new."""
        # With causal attention, a new token does not change the keys and values of the tokens before it.
        new = (keys, values)
        if self.window is not None and self.length >= 2 * self.window:
            # The window of the first new token begins window - 1 tokens before it.
            self.buffers = [x[:, :, self.length - self.window + 1 : self.length] for x in self.buffers]
            self.length = self.window - 1
        end = self.length + keys.size(2)
        if not self.buffers:
            self.buffers = [x[:, :, :0] for x in new]
        if end > self.buffers[0].size(2):
            self.buffers = [F.pad(x[:, :, : self.length], (0, 0, 0, 2 * end - self.length)) for x in self.buffers]
        for buffer, x in zip(self.buffers, new, strict=True):
            buffer[:, :, self.length : end] = x
        self.length = end
        start = 0 if self.window is None else max(0, end - keys.size(2) - self.window + 1)
        all_keys, all_values = (buffer[:, :, start:end] for buffer in self.buffers)
        return all_keys, all_values

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keep, reorder or repeat the rows of the batch; with beam lanes, a row is a sentence."""
        # The free part of the buffers is not copied: the next update allocates it again.
        self.buffers = [buffer[:, :, : self.length][rows] for buffer in self.buffers]

    def prune(self, columns: Int[Tensor, "B C"]) -> None:
        """Keep only the keys and values in the given columns of each row."""
        self.length = columns.size(1)
        # (B, C) -> (B, G, C, K): all heads keep the same columns, which `BeamLanes.prune` also keeps in its mask.
        index = columns[:, None, :, None]
        self.buffers = [x.gather(2, index.expand(-1, x.size(1), -1, x.size(3))) for x in self.buffers]


NO_CACHE = NoCache()
Cache = KVCache | NoCache
