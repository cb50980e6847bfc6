"""Attention of recurrent decoders over the states of an encoder: additive, dot, general and concat scores.

B batch, T queries, N source tokens, D model.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.nn.attention import MASKED_SCORE


class AdditiveScore(nn.Module):
    """Additive attention score v . tanh(W q + U k), with a layer of its own (Bahdanau et al. 2015, appendix A.1.2).

    Luong et al. (2015, formula 8) call it "concat": W and U are the halves of one matrix.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def keys(self, memory: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Project the memory once for all queries."""
        return self.key(memory)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B N D"]) -> Float[Tensor, "B T N"]:
        """Compute the score of each query with each key."""
        return self.score(torch.tanh(self.query(queries)[:, :, None] + keys[:, None])).squeeze(-1)


class DotScore(nn.Module):
    """Dot-product attention score q . k, without parameters (Luong et al. 2015, formula 8, "dot")."""

    def __init__(self, size: int) -> None:
        super().__init__()
        del size

    def keys(self, memory: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Return the memory itself."""
        return memory

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B N D"]) -> Float[Tensor, "B T N"]:
        """Compute the score of each query with each key."""
        return queries @ keys.transpose(1, 2)


class GeneralScore(DotScore):
    """General attention score q . W k: a dot product with projected states (Luong et al. 2015, formula 8)."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.key = nn.Linear(size, size, bias=False)

    def keys(self, memory: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Project the memory once for all queries."""
        return self.key(memory)


SCORES: dict[str, type[AdditiveScore | DotScore]] = {
    "additive": AdditiveScore,
    "concat": AdditiveScore,
    "dot": DotScore,
    "general": GeneralScore,
}


def attention_weights(scores: Float[Tensor, "B T N"], padding_mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B T N"]:
    """Compute attention weights by a softmax over the real source tokens."""
    return scores.masked_fill(~padding_mask[:, None], MASKED_SCORE).softmax(-1)
