"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2), with grouped-query attention.

B batch, T queries, S keys, D model, H query heads, G key and value heads, K key size, U value size, N source tokens.
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

MASKED_SCORE = -1e9  # instead of minus infinity: the weight is exactly 0 too, but a fully masked row stays finite
HALF_MASKED_SCORE = -3e4  # the same in float16, where it does not overflow even if a score is added
MIN_SOFTMAX_KEYS = 16  # float32 numbers in the widest register of a CPU
MAX_PLAIN_KEYS = 256  # up to here, torch's fused kernel is not faster than the plain formula on a CPU


def scaled_dot_product(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> tuple[Float[Tensor, "B H T U"], Float[Tensor, "B H T S"]]:
    """Compute scaled dot-product attention, softmax(q k^T / sqrt(K) + bias) v (section 3.2.1).

    Dropout with probability `p` is applied to the attention weights; the returned weights are those before dropout.
    """
    # Where a query may not attend, the bias is so negative that e^(score + bias) is exactly 0: see `masked_score`.
    weights = softmax(scaled_scores(q, k) + bias)
    return mix(dropout(weights, p), v), weights


def scaled_scores(q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"]) -> Float[Tensor, "B H T S"]:
    """Compute the attention scores q k^T / sqrt(K); query heads that share a key head are adjacent."""
    # Unscaled scores have variance K, and the softmax of large scores has almost no gradient (section 3.2.1).
    q = q * q.size(-1) ** -0.5
    # The H / G query heads of a group become a dimension, B G H/G T K, along which their keys are broadcast.
    return (q.unflatten(1, (k.size(1), -1)) @ k.unsqueeze(2).transpose(-1, -2)).flatten(1, 2)


def mix(weights: Float[Tensor, "B H T S"], v: Float[Tensor, "B G S U"]) -> Float[Tensor, "B H T U"]:
    """Sum the values, weighted by the attention weights, for each query and attention head."""
    # B G H/G T S times B G 1 S U: the heads of a group share its values, which are not copied.
    return (weights.unflatten(1, (v.size(1), -1)) @ v.unsqueeze(2)).flatten(1, 2)


def softmax(scores: Float[Tensor, "B H T S"]) -> Float[Tensor, "B H T S"]:
    """Compute the softmax over the keys, in float32 or float64, with rows of fewer than 16 keys padded to 16.

    For rows as short as sentences, torch's bfloat16 kernel takes up to ten times as long, and so does its float32
    kernel for rows that do not fill a register.
    """
    keys, dtype = scores.size(-1), torch.promote_types(scores.dtype, torch.float32)
    if keys >= MIN_SOFTMAX_KEYS:
        return torch.softmax(scores, dim=-1, dtype=dtype).to(scores.dtype)
    # Padding with minus infinity adds nothing to the sum.
    padded = F.pad(scores, (0, MIN_SOFTMAX_KEYS - keys), value=-torch.inf)
    return torch.softmax(padded, dim=-1, dtype=dtype)[..., :keys].to(scores.dtype)


def masked_softmax(scores: Float[Tensor, "B T N"], padding_mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B T N"]:
    """Compute the attention weights of a single head over the real keys, for recurrent and convolutional decoders."""
    return scores.masked_fill(~padding_mask[:, None], masked_score(scores)).softmax(-1)


def masked_score(like: Tensor) -> float:
    """Return the score of masked keys for the dtype in which products with `like` are computed."""
    return HALF_MASKED_SCORE if computes_in_half(like) else MASKED_SCORE


def computes_in_half(x: Tensor) -> bool:
    """Return True if products with a tensor are computed in float16, whose largest number is 65,504."""
    if x.dtype == torch.float16:
        return True
    device = x.device.type
    if not torch.amp.is_autocast_available(device):
        return False
    return torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == torch.float16


def attend(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """Compute attention with the fastest kernel for this device and length.

    The result equals that of `scaled_dot_product` up to rounding.

    On a CPU, torch's fused kernel takes up to four times as long as the plain formula for texts of sentence length, and
    is slower in the backward pass at any length.
    """
    if q.device.type == "cpu" and (torch.is_grad_enabled() or k.size(2) <= MAX_PLAIN_KEYS):
        return scaled_dot_product(q, k, v, bias, p)[0]
    return F.scaled_dot_product_attention(q, k, v, bias, p, enable_gqa=q.size(1) != k.size(1))


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2): projections of queries, keys, values and the output.

    With G < H key and value heads, each serves H / G query heads: grouped-query attention (Ainslie et al. 2023).

    Attributes:
        attention_fn: Computes the output of all heads; the inspector replaces it to record scores and weights.
        scores: Computes the scores of queries and keys, whose softmax are the attention weights.
    """

    parameter_kind = "self-attention"
    scores = staticmethod(scaled_scores)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.kv_heads = config.kv_heads or config.heads
        d_k = config.d_k or config.d_model // config.heads
        d_v = config.d_v or d_k
        # One matrix contains the projections of all heads: with d_k = D / H, they cost as much as one head of size D.
        self.q = nn.Linear(config.d_model, self.heads * d_k, bias=config.attention_bias)
        self.k = nn.Linear(config.d_model, self.kv_heads * d_k, bias=config.attention_bias)
        self.v = nn.Linear(config.d_model, self.kv_heads * d_v, bias=config.attention_bias)
        self.out = nn.Linear(self.heads * d_v, config.d_model, bias=config.attention_bias)
        self.scales = config.scale_scores
        self.dropout = Dropout(config.attention_dropout)  # only its p is used: the weights exist only in attention_fn
        self.attention_fn: Callable[..., Tensor] = attend

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B G S K"],
        values: Float[Tensor, "B G S U"],
        attention_bias: Float[Tensor, "#B #H #T S"],
        /,
    ) -> Float[Tensor, "B T D"]:
        """Attend from projected queries to projected keys and values, under an additive attention bias."""
        y = self.attention_fn(queries, keys, values, attention_bias, self.dropout.p if self.training else 0.0)
        # Concatenate the heads of each token, B H T U to B T HU, and project them to the model size.
        return self.out(y.transpose(1, 2).flatten(2))

    def queries(self, x: Float[Tensor, "B T D"], rotate: Rotation = unrotated) -> Float[Tensor, "B H T K"]:
        """Project the hidden states of T tokens to queries."""
        q = rotate(split(self.q(x), self.heads))
        # The kernels divide all scores by sqrt(K); without `scale_scores`, this factor cancels it.
        return q if self.scales else q * q.size(-1) ** 0.5

    def keys_values(self, context: Float[Tensor, "B S D"], rotate: Rotation = unrotated) -> KeysValues:
        """Project the context of S tokens to keys (B G S K) and values (B G S U)."""
        # Only scores depend on positions: values are not rotated.
        return rotate(split(self.k(context), self.kv_heads)), split(self.v(context), self.kv_heads)


def split(x: Float[Tensor, "B T HK"], heads: int) -> Float[Tensor, "B H T K"]:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
