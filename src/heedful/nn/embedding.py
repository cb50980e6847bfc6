"""Token embeddings (Vaswani et al. 2017, section 3.4).

B batch, T tokens, D model, V vocabulary.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


class Embedding(nn.Module):
    """One vector a token, times sqrt(d_model): drawn from N(0, 1 / d_model), it enters the model with variance 1."""

    def __init__(self, vocab: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.scale = d_model**0.5

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Look the tokens up."""
        return F.embedding(tokens, self.weight) * self.scale
