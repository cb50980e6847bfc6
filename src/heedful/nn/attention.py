"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2), with grouped attention heads.

B batch, T queries, S keys, D model, H query heads, G key and value heads, K key size, U value size.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.dropout import Dropout, dropout
from heedful.nn.kv_cache import KeysValues
from heedful.nn.positions import Rotation, unrotated

MASKED_SCORE = -1e9  # stands for minus infinity: its softmax is exactly 0, yet a fully masked row stays finite
REGISTER = 16  # float32 numbers in the widest register of a CPU
SENTENCE = 256  # keys up to which torch's fused kernel is not faster on a CPU


def scaled_dot_product(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> tuple[Float[Tensor, "B H T U"], Float[Tensor, "B H T S"]]:
    """Scaled dot-product attention, softmax(q k^T / sqrt(K) + bias) v, with the attention weights before dropout.

    Dropout with probability `p` is on the weights.
    """
    # The bias is 0 where a query may look and -1e9 elsewhere, where e^(score + bias) is exactly 0.
    weights = softmax(scaled_scores(q, k) + bias)
    return mix(dropout(weights, p), v), weights


def scaled_scores(q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"]) -> Float[Tensor, "B H T S"]:
    """Scaled attention scores q k^T / sqrt(K); query heads that share a key head are adjacent."""
    # Without the scale scores have variance K, and a softmax of large scores has almost no gradient (section 3.2.1).
    # The H / G query heads of a group become a dimension, B G H/G T K, along which its keys are the same.
    q = q.unflatten(1, (k.size(1), -1))
    return ((q * q.size(-1) ** -0.5) @ k.unsqueeze(2).transpose(-1, -2)).flatten(1, 2)


def mix(weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B G S U"]) -> Float[Tensor, "B H T U"]:
    """Weighted sum of the values by the attention weights, for each query and attention head."""
    # B G H/G T S times B G 1 S U: the heads of a group share its values, which are not copied.
    return (weights.unflatten(1, (v.size(1), -1)) @ v.unsqueeze(2)).flatten(1, 2)


def softmax(scores: Float[Tensor, "B H T S"]) -> Float[Tensor, "B H T S"]:
    """Softmax over the keys, computed in float32 at least and over 16 keys at least.

    For rows as short as sentences torch's bfloat16 kernel takes up to ten times as long, and so does its float32 kernel
    for rows that do not fill a register.
    """
    keys, exact = scores.size(-1), torch.promote_types(scores.dtype, torch.float32)
    if keys >= REGISTER:
        return torch.softmax(scores, dim=-1, dtype=exact).to(scores.dtype)
    # Keys at minus infinity add nothing to the sum.
    filled = F.pad(scores, (0, REGISTER - keys), value=-torch.inf)
    return torch.softmax(filled, dim=-1, dtype=exact)[..., :keys].to(scores.dtype)


def masked_softmax(scores: Float[Tensor, "B T N"], padding_mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B T N"]:
    """Attention weights of a single head by a softmax over the real keys, for models that are not Transformers."""
    return scores.masked_fill(~padding_mask[:, None], MASKED_SCORE).softmax(-1)


def attend(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """Attention output by the fastest kernel for this device and length; equals `scaled_dot_product` up to rounding.

    The fastest is torch's fused kernel, except on a CPU at the lengths of sentences, where the fused kernel takes up to
    four times as long as the plain formula, and for a backward pass on a CPU at any length.
    """
    if q.device.type == "cpu" and (torch.is_grad_enabled() or k.size(2) <= SENTENCE):
        return scaled_dot_product(q, k, v, bias, p)[0]
    return F.scaled_dot_product_attention(q, k, v, bias, p, enable_gqa=q.size(1) != k.size(1))


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2): projects queries, keys, values and the output.

    With G < H key and value heads, each serves H / G query heads: grouped-query attention (Ainslie et al. 2023).

    Attributes:
        attention_fn: computes the output of all heads; the inspector replaces it to see inside.
    """

    parameter_kind = "self-attention"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.kv_heads = config.kv_heads or config.heads
        d_k = config.d_k or config.d_model // config.heads
        d_v = config.d_v or d_k
        # One matrix holds the projections of all heads: with d_k = D / H the cost is that of one head of size D.
        self.q = nn.Linear(config.d_model, self.heads * d_k, bias=config.attention_bias)
        self.k = nn.Linear(config.d_model, self.kv_heads * d_k, bias=config.attention_bias)
        self.v = nn.Linear(config.d_model, self.kv_heads * d_v, bias=config.attention_bias)
        self.out = nn.Linear(self.heads * d_v, config.d_model, bias=config.attention_bias)
        self.dropout = Dropout(config.attention_dropout)  # its p goes to the attention function, which has the weights
        self.attention_fn: Callable[..., Tensor] = attend

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B G S K"],
        values: Float[Tensor, "B G S U"],
        attention_bias: Float[Tensor, "#B #H #T S"],
    ) -> Float[Tensor, "B T D"]:
        """Attend from projected queries to projected keys and values, under an additive attention bias."""
        y = self.attention_fn(queries, keys, values, attention_bias, self.dropout.p if self.training else 0.0)
        # Each head has written its U numbers of a token: side by side (B T HU) they go through the output projection.
        return self.out(y.transpose(1, 2).flatten(2))

    def queries(self, x: Float[Tensor, "B T D"], rotate: Rotation = unrotated) -> Float[Tensor, "B H T K"]:
        """Project the hidden states of T tokens to queries."""
        return rotate(split(self.q(x), self.heads))

    def keys_values(self, context: Float[Tensor, "B S D"], rotate: Rotation = unrotated) -> KeysValues:
        """Project the context of S tokens to keys (B G S K) and values (B G S U)."""
        # Only scores depend on positions: values are not rotated.
        return rotate(split(self.k(context), self.kv_heads)), split(self.v(context), self.kv_heads)


def split(x: Float[Tensor, "B T HK"], heads: int) -> Float[Tensor, "B H T K"]:
    """Split the last dimension into attention heads."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
