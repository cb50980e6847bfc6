"""Position schemes, which encode token order (sinusoidal, learned, rotary, ALiBi, relative, none).

A scheme acts in one of three ways: it adds vectors to the embeddings, it rotates queries and keys, or it adds a bias to
the scores of self-attention.

B batch, T queries, S keys, D model, H query heads, K key size.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig

Rotation = Callable[[Tensor], Tensor]  # maps queries or keys (B H T K) to the same shape


def unrotated(x: Tensor) -> Tensor:
    return x


class Positions(nn.Module):
    """Base class of position schemes; by itself, it adds no position information.

    A stack without positions and without a causal mask is permutation-equivariant.

    Args:
        config: The model configuration.
        causal: True if tokens attend only to themselves and earlier tokens.
    """

    parameter_kind = "positions"

    limit: int | None = None  # the number of positions in the scheme's table; None if there is no limit

    def __init__(self, config: Any, *, causal: bool) -> None:
        super().__init__()

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add position vectors to token embeddings; every value of `position` is below `length`."""
        return x

    def rotation(self, position: Int[Tensor, "B T"]) -> Rotation:
        """Create the function that rotates queries and keys by their positions."""
        return unrotated

    def add_bias(
        self, bias: Float[Tensor, "#B 1 #T S"], queries: Int[Tensor, "B T"], keys: Int[Tensor, "B S"]
    ) -> Float[Tensor, "#B #H #T S"]:
        """Add a term for the positions of queries and keys to the attention bias."""
        return bias


class Sinusoidal(Positions):
    """Sinusoidal positions: sines in even, cosines in odd dimensions, for any length (Vaswani et al. 2017, 3.5)."""

    table: Float[Tensor, "N D"]

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.register_buffer("table", sinusoids(config.max_positions, config.d_model), persistent=False)

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add the sinusoidal vector of each position; the table grows with the length of the sequence."""
        # `length` is an argument because the largest position is on the device, and reading it would make the CPU wait.
        if length > self.table.size(0):
            # Twice the length, so that decoding does not recompute the table at each step.
            self.table = sinusoids(2 * length, x.size(-1)).to(self.table)
        return x + self.table[position]


class Learned(Positions):
    """Learned positions: one vector per position (Gehring et al. 2017; Vaswani et al. 2017, Table 3, row E)."""

    def __init__(self, config: Any, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.limit = config.max_positions
        self.table = nn.Embedding(config.max_positions, config.d_model)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add the learned vector of each position; raise an IndexError if a row is longer than `max_positions`."""
        if length > self.table.num_embeddings:
            raise IndexError(f"a row has {length} tokens, but model.max_positions is {self.table.num_embeddings}")
        return x + self.table(position)


class Rotary(Positions):
    """Rotary positions (RoPE): rotates queries and keys by angles proportional to the position (Su et al. 2021).

    Scores depend only on relative positions. Dimension i is paired with dimension i + K/2, as in Llama; the paper pairs
    neighbouring dimensions, which is equivalent up to their order.
    """

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        # The K dimensions of a head rotate in K/2 pairs, each with a different frequency.
        self.pairs = config.rotary_size // 2
        self.theta = config.rope_theta

    def rotation(self, position: Int[Tensor, "B T"]) -> Rotation:
        """Create the rotation of pair i by position x theta^(-2i/K) radians; angles are float32 for any model dtype."""
        # As complex numbers, the product of q e^(imf) and the conjugate of k e^(inf) depends only on m - n.
        frequency = self.theta ** (torch.arange(self.pairs, device=position.device) / -self.pairs)
        angle = position[:, None, :, None] * frequency  # B 1 T K/2, the same in all heads
        sin, cos = angle.sin(), angle.cos()

        def rotate(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T K"]:
            left, right = x.chunk(2, dim=-1)  # the two coordinates of K/2 points in the plane
            s, c = sin.to(x.dtype), cos.to(x.dtype)
            return torch.cat([left * c - right * s, right * c + left * s], dim=-1)

        return rotate


class Alibi(Positions):
    """ALiBi positions: attention scores decrease linearly with distance, with a slope per head (Press et al. 2022).

    If H is a power of two, the slopes of the H heads are 2^(-8/H), 2^(-16/H), ... Otherwise they are the slopes for the
    next lower power of two, followed by slopes in between.
    """

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        power = 1 << config.heads.bit_length() - 1  # the largest power of two that is at most H
        slopes = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
        # The slopes in between are every other one of the sequence for 2 x `power` heads, as in the authors' code.
        self.slopes = slopes + [2.0 ** (-4 * (2 * i + 1) / power) for i in range(config.heads - power)]

    def add_bias(
        self, bias: Float[Tensor, "#B 1 #T S"], queries: Int[Tensor, "B T"], keys: Int[Tensor, "B S"]
    ) -> Float[Tensor, "#B #H #T S"]:
        distance = (queries[:, None, :, None] - keys[:, None, None, :]).abs()  # B 1 T S
        slopes = torch.tensor(self.slopes, device=distance.device)[:, None, None]  # H 1 1
        # Heads with steep slopes attend to nearby tokens, heads with flat slopes also to distant ones.
        return bias - (slopes * distance).to(bias.dtype)


class Relative(Positions):
    """Relative positions: a trained bias for each head and bucket of distances (T5, Raffel et al. 2020, section 2.1).

    All layers share the biases. Half of the 32 buckets contain one distance each; the others grow on a logarithmic
    scale up to distance 128, and the last one contains all larger distances. A stack that is not causal has half of the
    buckets for each direction.
    """

    BUCKETS, MAX_DISTANCE = 32, 128

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.causal = causal
        self.table = nn.Embedding(self.BUCKETS, config.heads)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)

    def add_bias(
        self, bias: Float[Tensor, "#B 1 #T S"], queries: Int[Tensor, "B T"], keys: Int[Tensor, "B S"]
    ) -> Float[Tensor, "#B #H #T S"]:
        offset = keys[:, None, :] - queries[:, :, None]  # B T S
        return bias + self.table(self.bucket(offset)).movedim(-1, 1)  # B T S H to B H T S

    def bucket(self, offset: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        buckets = self.BUCKETS if self.causal else self.BUCKETS // 2
        distance = (-offset).clamp(min=0) if self.causal else offset.abs()
        exact = buckets // 2  # distances below this have one bucket each
        # log(distance / exact) / log(MAX_DISTANCE / exact) grows from 0 at `exact` to 1 at MAX_DISTANCE.
        far = (distance.clamp(min=1) / exact).log() / math.log(self.MAX_DISTANCE / exact) * (buckets - exact)
        near = torch.where(distance < exact, distance, (exact + far.long()).clamp(max=buckets - 1))
        # Without a causal mask, the second half of the buckets is for keys after the query.
        return near if self.causal else near + buckets * (offset > 0)


def sinusoids(length: int, d_model: int) -> Float[Tensor, "N D"]:
    """Compute the vectors of the first `length` sinusoidal positions, in float32 from angles in float64.

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), and PE(pos, 2i+1) is the cosine of the same angle.
    """
    # PE(pos + k) is a rotation of PE(pos) by angles that depend only on k, so that a linear layer can attend to the
    # token k positions away; wavelengths range from 2 pi to 10000 x 2 pi (section 3.5).
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()
