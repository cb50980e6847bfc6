"""Position schemes: how a stack learns the order of its tokens. The base class is the null object, a bag of words.

B batch, T queries, D model.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig


class Positions(nn.Module):
    """No position information: a stack over it is equivariant to permutations of its input."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add positions to token embeddings; every value of `position` is below `length`."""
        return x


class Sinusoidal(Positions):
    """Sines in the even dimensions, cosines in the odd ones (Vaswani et al. 2017, section 3.5). Any length."""

    table: Float[Tensor, "N D"]

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.register_buffer("table", sinusoids(config.max_positions, config.d_model), persistent=False)

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add the sinusoid of each position; the table grows to whatever length it meets."""
        if length > self.table.size(0):
            self.table = sinusoids(2 * length, x.size(-1)).to(self.table)
        return x + self.table[position]


class Learned(Positions):
    """One trained vector a position (Gehring et al. 2017; row E of Table 3 in Vaswani et al. 2017)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
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


def sinusoids(length: int, d_model: int) -> Float[Tensor, "N D"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/D)), computed in float64."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


POSITIONS: dict[str, type[Positions]] = {"sinusoidal": Sinusoidal, "learned": Learned, "none": Positions}
