"""A trunk and what is asked of it: a decision for a text, one for each of its tokens, or a vector.

B batch, S tokens, C outputs, D model.
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.models.backbone import FAMILIES
from heedful.models.initialization import initialise
from heedful.models.pooling import POOLINGS, Pooler
from heedful.nn.dropout import Dropout


class TextClassifier(nn.Module):
    """A trunk, one vector for each text, and a linear layer over it (Devlin et al. 2019, section 4.1)."""

    def __init__(self, config: ModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.trunk = FAMILIES[config.family](config, vocab)
        self.pooler = Pooler(config, config.pooling or self.trunk.pooling)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, outputs)
        initialise(self, config)

    def forward(
        self, tokens: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B C"]:
        """The outputs of each text: logits of classes, or numbers."""
        return self.output(self.dropout(self.pooler(self.trunk(tokens, keep, segments), keep)))


class TokenClassifier(nn.Module):
    """A trunk and a linear layer over each state (Devlin et al. 2019, sections 4.2 and 5.3)."""

    def __init__(self, config: ModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.trunk = FAMILIES[config.family](config, vocab)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, outputs)
        initialise(self, config)

    def forward(
        self, tokens: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B S C"]:
        """The outputs of each token."""
        return self.output(self.dropout(self.trunk(tokens, keep, segments)))


class SentenceEncoder(nn.Module):
    """A trunk and one vector of length 1 for each text, the mean of its states (Reimers & Gurevych 2019, section 3)."""

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__()
        self.trunk = FAMILIES[config.family](config, vocab)
        self.pool = POOLINGS[config.pooling or "mean"]
        initialise(self, config)

    def forward(
        self, tokens: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B D"]:
        """The vector of each text: the dot product of two of them is the cosine of their angle."""
        return F.normalize(self.pool(self.trunk(tokens, keep, segments), keep), dim=-1)
