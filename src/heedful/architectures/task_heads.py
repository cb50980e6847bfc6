"""Task heads over a backbone: sequence classifier, token classifier and sentence encoder.

B batch, N inputs, S tokens, C outputs, D model.
"""

from typing import Any

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone, BackboneModel, text_backbone
from heedful.architectures.initialization import initialise
from heedful.architectures.model import all_real
from heedful.architectures.pooling import POOLERS, POOLINGS
from heedful.config.schema import TextModelConfig
from heedful.nn.dropout import Dropout
from heedful.nn.embedding import Embedding


class SequenceClassifier(BackboneModel):
    """Classifier or regressor of sequences: a backbone, a pooler and a linear layer (Devlin et al. 2019, section 4.1).

    The sequences are what the input layer of the backbone takes.
    """

    logit_axes = ("class",)
    predicts_tokens = False

    def __init__(self, config: TextModelConfig, backbone: Backbone[Any], outputs: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooler = POOLERS[config.pooler](config, config.pooling or self.backbone.pooling)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.hidden_size, outputs)
        initialise(self, config)

    def forward(
        self,
        inputs: Shaped[Tensor, "B N *F"],
        padding_mask: Bool[Tensor, "B N"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Compute the outputs of each sequence: logits of classes, or numbers; without a mask all inputs are real."""
        padding_mask = all_real(inputs, padding_mask)
        return self.output(self.dropout(self.pooler(*self.backbone.encode(inputs, padding_mask, segments))))


class TextClassifier(SequenceClassifier):
    """Text classifier or regressor: a sequence classifier over token ids."""

    def __init__(self, config: TextModelConfig, vocab: int, outputs: int) -> None:
        super().__init__(config, text_backbone(config, vocab), outputs)


class TokenClassifier(BackboneModel):
    """Token classifier: a backbone and a linear layer over each hidden state (Devlin et al. 2019, section 5.3)."""

    logit_axes = ("token", "class")
    predicts_tokens = False

    def __init__(self, config: TextModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.backbone = text_backbone(config, vocab)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.hidden_size, outputs)
        initialise(self, config)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        padding_mask: Bool[Tensor, "B S"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B S C"]:
        """Compute the logits of each token."""
        padding_mask = all_real(tokens, padding_mask)
        return self.output(self.dropout(self.backbone(tokens, padding_mask, segments)))


class SentenceEncoder(BackboneModel):
    """Sentence encoder: a backbone with pooling, by default the mean, to one vector of length 1 for each text.

    The mean of the hidden states is the choice of Reimers & Gurevych (2019, section 3).

    Args:
        config: the settings of the model.
        vocab: the number of tokens.
        backbone: a trained backbone, which is shared; None: a new one.
    """

    predicts_tokens = False

    def __init__(self, config: TextModelConfig, vocab: int, backbone: Backbone[Embedding] | None = None) -> None:
        super().__init__()
        self.backbone = backbone or text_backbone(config, vocab)
        self.pool = POOLINGS[config.pooling or "mean"]
        self.size = config.hidden_size  # of the vectors
        if backbone is None:
            initialise(self, config)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        padding_mask: Bool[Tensor, "B S"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B D"]:
        """Compute the vector of each text; the dot product of two vectors is their cosine similarity."""
        padding_mask = all_real(tokens, padding_mask)
        return F.normalize(self.pool(self.backbone(tokens, padding_mask, segments), padding_mask), dim=-1)
