"""Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1): a small KV cache for many heads.

B batch, T queries, S keys, D model, H heads, R latent size, K head size, P size of the rotary part, U value size, and
Q = K + P.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention, split
from heedful.nn.kv_cache import KeysValues
from heedful.nn.lora import merged_weight
from heedful.nn.positions import Rotation, unrotated


class Latent(nn.Module):
    """Projection of hidden states to smaller, normalised vectors."""

    def __init__(self, config: ModelConfig, size: int) -> None:
        super().__init__()
        self.down = nn.Linear(config.d_model, size, bias=config.attention_bias)
        self.norm = nn.RMSNorm(size, eps=config.norm_eps)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T R"]:
        return self.norm(self.down(x))


class LatentAttention(Attention):
    """Self-attention whose keys and values, of all heads, are projections of one latent vector per token.

    A key has two parts: K numbers from the latent, which are not rotated, so that queries can also attend to latents
    (`attend_to_latents`), and P numbers for rotary positions, which all heads share. The cache stores R + P numbers per
    token instead of the 2 H K of multi-head attention. With other positions, the P numbers are not rotated.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)  # heads, kernel and output projection
        self.rotary_size = config.rotary_size
        key_size, value_size = config.head_size, config.d_v or config.head_size
        self.q_latent = Latent(config, config.q_rank) if config.q_rank else nn.Identity()
        self.q = nn.Linear(
            config.q_rank or config.d_model, self.heads * (key_size + self.rotary_size), bias=config.attention_bias
        )
        self.kv_latent = Latent(config, config.latent_size)
        # Without biases: one of the keys would add the same to all scores of a query, one of the values to all outputs.
        self.k = nn.Linear(config.latent_size, self.heads * key_size, bias=False)
        self.v = nn.Linear(config.latent_size, self.heads * value_size, bias=False)
        self.k_rotary = nn.Linear(config.d_model, self.rotary_size, bias=config.attention_bias)

    def queries(self, x: Float[Tensor, "B T D"], rotate: Rotation = unrotated) -> Float[Tensor, "B H T Q"]:
        """Project the hidden states of T tokens to queries, and rotate their last P dimensions."""

        def rotate_last(q: Tensor) -> Tensor:
            return torch.cat([q[..., : -self.rotary_size], rotate(q[..., -self.rotary_size :])], dim=-1)

        return super().queries(self.q_latent(x), rotate_last)

    def keys_values(self, context: Float[Tensor, "B S D"], rotate: Rotation = unrotated) -> KeysValues:
        """Compute what the cache stores: the latents (B 1 S R) and the rotated part of the keys (B 1 S P)."""
        return self.kv_latent(context)[:, None], rotate(self.k_rotary(context)[:, None])

    def forward(
        self,
        queries: Float[Tensor, "B H T Q"],
        latents: Float[Tensor, "B 1 S R"],
        rotary_keys: Float[Tensor, "B 1 S P"],
        attention_bias: Float[Tensor, "#B #H #T S"],
        /,
    ) -> Float[Tensor, "B T D"]:
        """Attend from queries to the keys and values of S latents."""
        if queries.size(2) < latents.size(2):
            return self.attend_to_latents(queries, latents, rotary_keys, attention_bias)
        keys, values = (split(up(latents[:, 0]), self.heads) for up in (self.k, self.v))
        keys = torch.cat([keys, rotary_keys.expand(-1, self.heads, -1, -1)], dim=-1)
        return super().forward(queries, keys, values, attention_bias)

    def attend_to_latents(
        self,
        queries: Float[Tensor, "B H T Q"],
        latents: Float[Tensor, "B 1 S R"],
        rotary_keys: Float[Tensor, "B 1 S P"],
        attention_bias: Float[Tensor, "#B #H #T S"],
    ) -> Float[Tensor, "B T D"]:
        """Compute the same for a few new queries without expanding all S latents to keys and values.

        The score of a query with the key W c of a latent c is also the score of the query W^T q with the latent, and
        the sum of values is the value of the sum of latents: attention with a single head of keys and values.
        """
        up_k, up_v = (merged_weight(up).unflatten(0, (self.heads, -1)) for up in (self.k, self.v))  # H K R, H U R
        q, rotary = queries.split([up_k.size(1), self.rotary_size], dim=-1)
        q, keys = torch.cat([q @ up_k, rotary], dim=-1), torch.cat([latents, rotary_keys], dim=-1)
        # The kernels divide scores by the root of the size of these longer queries.
        q = q * (q.size(-1) / queries.size(-1)) ** 0.5
        y = self.attention_fn(q, keys, latents, attention_bias, self.dropout.p if self.training else 0.0)
        return self.out((y @ up_v.transpose(1, 2)).transpose(1, 2).flatten(2))
