"""Linear attention (Katharopoulos et al. 2020, "Transformers are RNNs", section 3): sums instead of pairs of tokens.

The weight of a key k for a query q is phi(q) phi(k), divided by the sum of these products over all keys. Products of
matrices are associative, so that phi(q) (phi(k)^T v) needs no number for each pair of tokens: memory is linear in the
length of a text, and the state of generation has a fixed size.

B batch, T queries, S keys, D model, H query heads, G key and value heads, K key size, U value size.
"""

from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention, mix, softmax, split
from heedful.nn.dropout import dropout
from heedful.nn.kv_cache import KeysValues, KVCache
from heedful.nn.masks import AttentionMask, SelfAttentionInputs
from heedful.nn.positions import Rotation, unrotated

CHUNK = 128  # queries whose weights are computed at once, under a causal mask


def features(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Map queries or keys to positive numbers, elu(x) + 1 (section 3.2.1)."""
    return F.elu(x) + 1


def log_similarity(q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"]) -> Float[Tensor, "B H T S"]:
    """Compute the logarithms of phi(q) phi(k)^T: scores whose softmax are the weights of linear attention."""
    products = (q.unflatten(1, (k.size(1), -1)) @ k.unsqueeze(2).transpose(-1, -2)).flatten(1, 2)
    return products.clamp(min=torch.finfo(products.dtype).tiny).log()


def attend_to_each(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """Compute linear attention from the weight of each query and key, under an additive mask."""
    return mix(dropout(softmax(log_similarity(q, k) + bias), p), v)


@dataclass(frozen=True)
class LinearInputs(SelfAttentionInputs):
    """Inputs of linear attention: the tokens that the sums of each query include."""

    padding_mask: Bool[Tensor, "B T"]  # True for real tokens
    documents: Int[Tensor, "B T"]  # the document of each token; only in packed rows is there more than one
    causal: bool

    @classmethod
    def of(cls, mask: AttentionMask) -> "LinearInputs":
        if mask.documents is not None and not mask.causal:
            raise ValueError("linear attention that is not causal has one sum for a row; give documents separate rows")
        queries = mask.query_positions.size(1)
        documents = torch.zeros_like(mask.query_positions) if mask.documents is None else mask.documents[:, -queries:]
        return cls(mask.padding_mask[:, -queries:], documents, mask.causal)

    def rotate(self, x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T K"]:
        """Set the queries and keys of padding to 0, because sums have no mask; positions do not rotate them."""
        return x * self.padding_mask[:, None, :, None]

    def attend(self, attention: Attention, queries: Tensor, keys: Tensor, values: Tensor) -> Float[Tensor, "B T D"]:
        return attention(queries, keys, values, self)


class LinearAttention(Attention):
    """Multi-head self-attention whose weights are products of features of queries and keys.

    With an attention bias, it computes the weight of each query and key: in a beam search, whose lanes share a KV
    cache, and for the inspector.
    """

    scores = staticmethod(log_similarity)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.attention_fn = attend_to_each

    def queries(self, x: Float[Tensor, "B T D"], rotate: Rotation = unrotated) -> Float[Tensor, "B H T K"]:
        """Project the hidden states of T tokens to features of queries."""
        return rotate(features(split(self.q(x), self.heads)))

    def keys_values(self, context: Float[Tensor, "B S D"], rotate: Rotation = unrotated) -> KeysValues:
        """Project the hidden states of S tokens to features of keys (B G S K) and to values (B G S U)."""
        return rotate(features(split(self.k(context), self.kv_heads))), split(self.v(context), self.kv_heads)

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B G S K"],
        values: Float[Tensor, "B G S U"],
        attention_bias: Float[Tensor, "#B #H #T S"] | LinearInputs,
        /,
    ) -> Float[Tensor, "B T D"]:
        if isinstance(attention_bias, Tensor):
            return super().forward(queries, keys, values, attention_bias)
        device = queries.device.type
        # In the half precision of autocast, sums over long texts would lose most digits, or overflow.
        with torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext():
            q, k, v = map(at_least_float32, (queries, keys, values))
            y = attend_to_sums(q, k, v, attention_bias)
        return self.out(y.to(queries.dtype).transpose(1, 2).flatten(2))


def at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def attend_to_sums(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], v: Float[Tensor, "B G S U"], inputs: LinearInputs
) -> Float[Tensor, "B H T U"]:
    """Compute linear attention from sums over keys (section 3.2; if causal, section 3.3)."""
    q = q.unflatten(1, (k.size(1), -1))  # B G H/G T K: the heads of a group share its keys, as in `scaled_scores`
    # The denominator is the same sum as the numerator, with the value 1 for each key.
    k, v = k.unsqueeze(2), torch.cat([v, torch.ones_like(v[..., :1])], dim=-1).unsqueeze(2)
    sums = causal_sums(q, k, v, inputs.documents) if inputs.causal else q @ (k.mT @ v)
    numerator, denominator = sums[..., :-1], sums[..., -1:]
    # The denominator is 0 only if all keys are padding, which contribute nothing to the numerator either.
    return (numerator / denominator.masked_fill(denominator == 0, 1)).flatten(1, 2)


def causal_sums(
    q: Float[Tensor, "B G J T K"],
    k: Float[Tensor, "B G 1 S K"],
    v: Float[Tensor, "B G 1 S V"],
    documents: Int[Tensor, "B T"],
) -> Float[Tensor, "B G J T V"]:
    """Compute q_t sum_s k_s^T v_s over the keys up to each query; the queries are the last T of the S keys.

    Within a chunk, each query is multiplied by each key. Of earlier chunks, one matrix is left (K V): the sum over the
    document of their last token, which is the only one that may continue.
    """
    chunks, past = q.split(CHUNK, dim=-2), k.size(-2) - q.size(-2)
    sizes = [chunk.size(-2) for chunk in chunks]
    sizes[0] += past  # the first chunk also has the keys before the queries: those of a cache, without packed rows
    parts = (k.split(sizes, dim=-2), v.split(sizes, dim=-2), F.pad(documents, (past, 0)).split(sizes, dim=1))
    state, last, sums = q.new_zeros(()), documents[:, :1], []
    for number, (chunk_q, chunk_k, chunk_v, document) in enumerate(zip(chunks, *parts, strict=True)):
        earlier = chunk_k.size(-2) - chunk_q.size(-2)
        same = document[:, earlier:, None] == document[:, None, :]  # B T S
        weights = (chunk_q @ chunk_k.mT * same[:, None, None]).tril(earlier)
        sums.append(weights @ chunk_v)
        if number > 0:
            continues = document == last  # B T
            sums[-1] = sums[-1] + chunk_q @ state * continues[:, None, None, :, None]
            state = state * continues[:, None, None, -1:, None]
        if number < len(chunks) - 1:
            state = state + (chunk_k * same[:, None, None, -1, :, None]).mT @ chunk_v
        last = document[:, -1:]
    return torch.cat(sums, dim=-2)


class LinearCache(KVCache):
    """State of linear attention during generation: sums over all tokens so far, in place of their keys and values.

    To new tokens, it looks like K earlier ones. Token i stands for feature i of all keys: its key has the sum of that
    feature in dimension i and 0 elsewhere, and its value is the mean of all values, weighted by that feature.
    """

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        """Add new tokens to the sums; return them after the K tokens that stand for all tokens before them."""
        keys, values = at_least_float32(keys), at_least_float32(values)
        new = keys.sum(2), keys.mT @ values  # (B G K) and (B G K U)
        if not self.buffers:
            self.buffers = [*new]
            return keys, values
        weights, sums = self.buffers
        self.buffers = [weights + new[0], sums + new[1]]
        # Without real tokens, the weights and the sums are 0.
        means = sums / weights.masked_fill(weights == 0, 1)[..., None]
        return torch.cat([weights.diag_embed(), keys], dim=2), torch.cat([means, values], dim=2)

    def select(self, rows: Int[Tensor, " R"]) -> None:
        self.buffers = [buffer[rows] for buffer in self.buffers]
