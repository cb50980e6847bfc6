"""Embeddings of tokens (Vaswani et al. 2017, section 3.4) and of segments (Devlin et al. 2019, section 3).

B batch, T tokens, D model, V vocabulary.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig


class Embedding(nn.Module):
    """One vector a token, times sqrt(d_model): drawn from N(0, 1 / d_model), it enters the model with variance 1.

    Without `config.scale_embeddings` it enters as it is.
    """

    def __init__(self, vocab: int, config: ModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, config.d_model))
        nn.init.normal_(self.weight, std=config.d_model**-0.5)
        self.scale = config.d_model**0.5 if config.scale_embeddings else 1.0

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Look the tokens up."""
        return F.embedding(tokens, self.weight) * self.scale


class OneSegment(nn.Module):
    """All text is of one kind: nothing is added."""

    def forward(self, x: Float[Tensor, "B T D"], segments: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """`x` as it is."""
        return x


class Segments(nn.Module):
    """One trained vector for each kind of text in a sequence, such as question and answer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.segments, config.d_model)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)

    def forward(self, x: Float[Tensor, "B T D"], segments: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Add the vector of each token's segment, counted from 0; one beyond the last that is known is like it."""
        return x + self.table(segments.clamp(max=self.table.num_embeddings - 1))


def segment_embedding(config: ModelConfig) -> OneSegment | Segments:
    """What tells the segments of a sequence apart."""
    return Segments(config) if config.segments else OneSegment()
