"""Position schemes: how a stack learns the order of its tokens. The base class is the null object, a bag of words.

A scheme acts in one of three places, and leaves the two others alone: it adds to the embeddings, it rotates queries and
keys, or it adds to the scores of self-attention.

B batch, T queries, S keys, D model, H query heads, K key size.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig

Rotation = Callable[[Tensor], Tensor]  # of queries or keys, (B H T K) to (B H T K)


def unrotated(x: Tensor) -> Tensor:
    """Queries or keys as they are."""
    return x


class Positions(nn.Module):
    """No position information: a stack over it is equivariant to permutations of its input.

    Args:
        config: the model.
        causal: whether the stack sees the past only.

    Attributes:
        limit: how many positions there are; None: any number.
    """

    limit: int | None = None

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__()

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add positions to token embeddings; every value of `position` is below `length`."""
        return x

    def rotation(self, position: Int[Tensor, "B T"]) -> Rotation:
        """What turns the queries and keys at these positions before they meet."""
        return unrotated

    def add_bias(
        self, bias: Float[Tensor, "#B 1 #T S"], queries: Int[Tensor, "B T"], keys: Int[Tensor, "B S"]
    ) -> Float[Tensor, "#B #H #T S"]:
        """Add to the scores what the positions of queries and keys say."""
        return bias


class Sinusoidal(Positions):
    """Sines in the even dimensions, cosines in the odd ones (Vaswani et al. 2017, section 3.5). Any length."""

    table: Float[Tensor, "N D"]

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.register_buffer("table", sinusoids(config.max_positions, config.d_model), persistent=False)

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add the sinusoid of each position; the table grows to whatever length it meets."""
        if length > self.table.size(0):
            self.table = sinusoids(2 * length, x.size(-1)).to(self.table)
        return x + self.table[position]


class Learned(Positions):
    """One trained vector a position (Gehring et al. 2017; row E of Table 3 in Vaswani et al. 2017)."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.limit = config.max_positions
        self.table = nn.Embedding(config.max_positions, config.d_model)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add the vector of each position.

        Raises:
            IndexError: a sequence is longer than `max_positions`.
        """
        if length > self.table.num_embeddings:
            raise IndexError(f"{length} tokens, but model.max_positions is {self.table.num_embeddings}")
        return x + self.table(position)


class Rotary(Positions):
    """Queries and keys are turned by angles that grow with their position (Su et al. 2021), so that only offsets count.

    Dimension i turns with dimension i + K/2, as in Llama; the article's neighbours are the same up to their order.
    """

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.pairs = (config.d_k or config.d_model // config.heads) // 2

    def rotation(self, position: Int[Tensor, "B T"]) -> Rotation:
        """Turn by position x 10000^(-2i/K), computed in float32 whatever the model's type."""
        frequency = 10000.0 ** (torch.arange(self.pairs, device=position.device) / -self.pairs)
        angle = position[:, None, :, None] * frequency
        sin, cos = angle.sin(), angle.cos()

        def rotate(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T K"]:
            left, right = x.chunk(2, dim=-1)
            s, c = sin.to(x.dtype), cos.to(x.dtype)
            return torch.cat([left * c - right * s, right * c + left * s], dim=-1)

        return rotate


class Alibi(Positions):
    """Each head loses attention linearly with the distance, at a rate of its own (Press et al. 2022)."""

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.slopes = alibi_slopes(config.heads)

    def add_bias(
        self, bias: Float[Tensor, "#B 1 #T S"], queries: Int[Tensor, "B T"], keys: Int[Tensor, "B S"]
    ) -> Float[Tensor, "#B #H #T S"]:
        """Subtract slope x distance."""
        distance = (queries[:, None, :, None] - keys[:, None, None, :]).abs()
        slopes = torch.tensor(self.slopes, device=distance.device)[:, None, None]
        return bias - (slopes * distance).to(bias.dtype)


class Relative(Positions):
    """One trained term a head and a range of distances, shared by all layers (Raffel et al. 2020, section 2.1).

    There are 32 ranges: distances below 16, or below 8 where there is a future, one by one, then ever longer ranges up
    to 128 and all beyond. A stack that sees the future has half of them for each direction.
    """

    BUCKETS, FARTHEST = 32, 128

    def __init__(self, config: ModelConfig, *, causal: bool) -> None:
        super().__init__(config, causal=causal)
        self.causal = causal
        self.table = nn.Embedding(self.BUCKETS, config.heads)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)

    def add_bias(
        self, bias: Float[Tensor, "#B 1 #T S"], queries: Int[Tensor, "B T"], keys: Int[Tensor, "B S"]
    ) -> Float[Tensor, "#B #H #T S"]:
        """Add the term of each head and distance."""
        offset = keys[:, None, :] - queries[:, :, None]
        return bias + self.table(self.bucket(offset)).movedim(-1, 1)

    def bucket(self, offset: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """The range in which a key's position minus the query's falls."""
        buckets = self.BUCKETS if self.causal else self.BUCKETS // 2
        distance = (-offset).clamp(min=0) if self.causal else offset.abs()
        exact = buckets // 2
        far = (distance.clamp(min=1) / exact).log() / math.log(self.FARTHEST / exact) * (buckets - exact)
        near = torch.where(distance < exact, distance, (exact + far.long()).clamp(max=buckets - 1))
        return near if self.causal else near + buckets * (offset > 0)


def sinusoids(length: int, d_model: int) -> Float[Tensor, "N D"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/D)), computed in float64."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def alibi_slopes(heads: int) -> list[float]:
    """2^(-8/H), 2^(-16/H), ... for H a power of two; other numbers are filled up from between these."""
    power = 1 << heads.bit_length() - 1
    slopes = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2.0 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return slopes + between


POSITIONS: dict[str, type[Positions]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "rotary": Rotary,
    "alibi": Alibi,
    "relative": Relative,
    "none": Positions,
}
