"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2), with grouped heads and a cache.

B batch, T queries, S keys, D model, H query heads, G key and value heads, K key size, U value size.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.dropout import dropout
from heedful.nn.positions import Rotation, unrotated

HIDDEN = -1e9  # stands for minus infinity: its softmax is exactly 0, yet a row that sees nothing stays finite
REGISTER = 16  # float32 numbers in the widest register of a CPU
SENTENCE = 256  # keys up to which torch's fused kernel brings nothing on a CPU

KeysValues = tuple[Tensor, Tensor]  # (B G S K) and (B G S U)
Projection = Callable[[Tensor], KeysValues]
Cache = Callable[[Projection, Tensor], KeysValues]  # what to look at, given a layer's projection and its new context


def scaled_dot_product(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    rate: float = 0.0,
) -> tuple[Float[Tensor, "B H T U"], Float[Tensor, "B H T S"]]:
    """softmax(q k^T / sqrt(K) + bias) v, formula 1 of the paper, and the attention weights before dropout."""
    weights = softmax(scaled_scores(q, k) + bias)
    return mix(dropout(weights, rate), v), weights


def scaled_scores(q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"]) -> Float[Tensor, "B H T S"]:
    """How well queries and keys match, q k^T / sqrt(K), the heads that share keys beside each other."""
    q = q.unflatten(1, (k.size(1), -1))
    return ((q * q.size(-1) ** -0.5) @ k.unsqueeze(2).transpose(-1, -2)).flatten(1, 2)


def mix(weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B G S U"]) -> Float[Tensor, "B H T U"]:
    """The values, weighted."""
    return (weights.unflatten(1, (v.size(1), -1)) @ v.unsqueeze(2)).flatten(1, 2)


def softmax(scores: Float[Tensor, "B H T S"]) -> Float[Tensor, "B H T S"]:
    """Softmax over keys, computed in float32 at least and over 16 keys at least.

    For rows as short as sentences torch's bfloat16 kernel takes up to ten times as long, and so does its float32 kernel
    for rows that do not fill a register.
    """
    keys, exact = scores.size(-1), torch.promote_types(scores.dtype, torch.float32)
    if keys >= REGISTER:
        return torch.softmax(scores, dim=-1, dtype=exact).to(scores.dtype)
    filled = F.pad(scores, (0, REGISTER - keys), value=-torch.inf)
    return torch.softmax(filled, dim=-1, dtype=exact)[..., :keys].to(scores.dtype)


def attend(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    rate: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """The same output by whichever kernel is fastest: torch's fused one, except on a CPU at the lengths of sentences.

    There it takes up to four times as long as the plain formula, and its backward pass at any length does.
    """
    if q.device.type == "cpu" and (torch.is_grad_enabled() or k.size(2) <= SENTENCE):
        return scaled_dot_product(q, k, v, bias, rate)[0]
    return F.scaled_dot_product_attention(q, k, v, bias, rate, enable_gqa=q.size(1) != k.size(1))


class NoCache:
    """Project the whole context, every time."""

    def __call__(self, project: Projection, context: Tensor) -> KeysValues:
        """Keys and values of `context`."""
        return project(context)


class GrowingCache:
    """Self-attention while decoding: the context is new, what was seen before is remembered.

    The buffers double when full, so that a step costs no copy of the past.
    """

    def __init__(self) -> None:
        self.length = 0
        self.buffers: list[Tensor] = []

    def __call__(self, project: Projection, context: Tensor) -> KeysValues:
        """Keys and values of everything seen so far, `context` included."""
        new = project(context)
        end = self.length + context.size(1)
        if not self.buffers:
            self.buffers = [x[:, :, :0] for x in new]
        if end > self.buffers[0].size(2):
            self.buffers = [F.pad(x[:, :, : self.length], (0, 0, 0, 2 * end - self.length)) for x in self.buffers]
        for buffer, x in zip(self.buffers, new, strict=True):
            buffer[:, :, self.length : end] = x
        self.length = end
        keys, values = (buffer[:, :, :end] for buffer in self.buffers)
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep, reorder or repeat rows of the batch."""
        self.buffers = [buffer[:, :, : self.length][rows] for buffer in self.buffers]

    def keep(self, columns: Int[Tensor, "B C"]) -> None:
        """Forget the keys and values of all but some tokens of each row."""
        self.length = columns.size(1)
        index = columns[:, None, :, None]
        self.buffers = [x.gather(2, index.expand(-1, x.size(1), -1, x.size(3))) for x in self.buffers]


class FixedCache:
    """Cross-attention while decoding: the memory is projected once."""

    def __init__(self) -> None:
        self.kept: KeysValues | None = None

    def __call__(self, project: Projection, context: Tensor) -> KeysValues:
        """Keys and values of the first `context` met, with the rows selected since."""
        if self.kept is None:
            keys, values = project(context)
            self.kept = keys.contiguous(), values.contiguous()  # they are read at every step
        return self.kept

    def select(self, rows: Tensor) -> None:
        """Keep, reorder or repeat rows of the batch."""
        if self.kept is not None:
            self.kept = (self.kept[0][rows], self.kept[1][rows])


NO_CACHE = NoCache()


class Attention(nn.Module):
    """Multi-head attention (section 3.2.2): H projections of the queries, G of keys and values, one output projection.

    G < H shares each key and value head among H / G query heads (Ainslie et al. 2023).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.kv_heads = config.kv_heads or config.heads
        d_k = config.d_k or config.d_model // config.heads
        d_v = config.d_v or d_k
        self.q = nn.Linear(config.d_model, self.heads * d_k, bias=config.attention_bias)
        self.k = nn.Linear(config.d_model, self.kv_heads * d_k, bias=config.attention_bias)
        self.v = nn.Linear(config.d_model, self.kv_heads * d_v, bias=config.attention_bias)
        self.out = nn.Linear(self.heads * d_v, config.d_model, bias=config.attention_bias)
        self.rate = config.attention_dropout
        self.kernel: Callable[..., Tensor] = attend

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        context: Float[Tensor, "B S D"],
        bias: Float[Tensor, "#B #H #T S2"],
        cache: Cache = NO_CACHE,
        rotate: Rotation = unrotated,
    ) -> Float[Tensor, "B T D"]:
        """Let each of `x` look at `context`, or at all that `cache` makes of it, where `bias` is not minus infinity."""
        q = rotate(split(self.q(x), self.heads))
        k, v = cache(partial(self.keys_values, rotate=rotate), context)
        y = self.kernel(q, k, v, bias, self.rate if self.training else 0.0)
        return self.out(y.transpose(1, 2).flatten(2))

    def keys_values(self, context: Float[Tensor, "B S D"], rotate: Rotation = unrotated) -> KeysValues:
        """Project the context to keys (B G S K) and values (B G S U)."""
        return rotate(split(self.k(context), self.kv_heads)), split(self.v(context), self.kv_heads)


def split(x: Float[Tensor, "B T HK"], heads: int) -> Float[Tensor, "B H T K"]:
    """Cut the last dimension into heads."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
