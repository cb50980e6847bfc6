"""Task heads over a backbone: a decision for a text, one for each of its tokens, or a sentence vector.

B batch, S tokens, C outputs, D model.
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.models.backbone import BACKBONES, BackboneModel
from heedful.models.initialization import initialise
from heedful.models.pooling import POOLINGS, Pooler
from heedful.nn.dropout import Dropout


class TextClassifier(BackboneModel):
    """A backbone, one vector for each text, and a linear layer over it (Devlin et al. 2019, section 4.1)."""

    logit_axes = ("class",)
    predicts_tokens = False

    def __init__(self, config: ModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.backbone = BACKBONES[config.family](config, vocab)
        self.pooler = Pooler(config, config.pooling or self.backbone.pooling)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, outputs)
        initialise(self, config)

    def forward(
        self, tokens: Int[Tensor, "B S"], padding_mask: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B C"]:
        """The outputs of each text: logits of classes, or numbers."""
        return self.output(self.dropout(self.pooler(self.backbone(tokens, padding_mask, segments), padding_mask)))


class TokenClassifier(BackboneModel):
    """A backbone and a linear layer over each state (Devlin et al. 2019, sections 4.2 and 5.3)."""

    logit_axes = ("token", "class")
    predicts_tokens = False

    def __init__(self, config: ModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.backbone = BACKBONES[config.family](config, vocab)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, outputs)
        initialise(self, config)

    def forward(
        self, tokens: Int[Tensor, "B S"], padding_mask: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B S C"]:
        """The outputs of each token."""
        return self.output(self.dropout(self.backbone(tokens, padding_mask, segments)))


class SentenceEncoder(BackboneModel):
    """A backbone and one sentence vector of length 1, the mean of its states (Reimers & Gurevych 2019, section 3)."""

    predicts_tokens = False

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__()
        self.backbone = BACKBONES[config.family](config, vocab)
        self.pool = POOLINGS[config.pooling or "mean"]
        initialise(self, config)

    def forward(
        self, tokens: Int[Tensor, "B S"], padding_mask: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B D"]:
        """The vector of each text: the dot product of two of them is the cosine of their angle."""
        return F.normalize(self.pool(self.backbone(tokens, padding_mask, segments), padding_mask), dim=-1)
