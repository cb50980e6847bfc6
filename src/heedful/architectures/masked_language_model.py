"""BERT: masked language model with next-sentence prediction (Devlin et al. 2019, section 3.1).

B batch, S tokens, N chosen tokens, D model, V vocabulary.
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.backbone import BackboneModel, EncoderOnly
from heedful.architectures.initialization import initialise
from heedful.architectures.model import all_real
from heedful.architectures.pooling import Pooler
from heedful.config.schema import ModelConfig
from heedful.nn.embedding import Embedding
from heedful.nn.residual import NORMS


class Transform(nn.Module):
    """Transform of hidden states before the projection to the vocabulary, as in BERT: norm(GELU(x W + b))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = NORMS[config.normalization](config)

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Transform each hidden state by itself."""
        return self.norm(F.gelu(self.dense(x)))


class NextSentenceHead(nn.Module):
    """Next-sentence prediction head of BERT: from the pooled state, if the second passage follows the first."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pooler = Pooler(config, "first")
        self.output = nn.Linear(config.d_model, 2)

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B 2"]:
        """Compute the logits of "follows" and of "does not follow"."""
        return self.output(self.pooler(states, padding_mask))


class MaskedLanguageModel(BackboneModel):
    """Masked language model (BERT): an encoder with a head for masked tokens and, for pairs, one for next sentences."""

    def __init__(self, config: ModelConfig, vocab: int, *, pairs: bool) -> None:
        super().__init__()
        self.backbone = EncoderOnly(config, Embedding(vocab, config))
        self.transform = Transform(config)
        self.output = nn.Linear(config.d_model, vocab, bias=config.output_bias)
        self.next_sentence = NextSentenceHead(config) if pairs else None
        initialise(self, config)
        if config.tie != "none":
            self.output.weight = self.backbone.embedding.weight

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        padding_mask: Bool[Tensor, "B S"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B S V"]:
        """Compute the logits of every token over the vocabulary; without a padding mask all tokens are real."""
        padding_mask = all_real(tokens, padding_mask)
        return self.output(self.transform(self.backbone(tokens, padding_mask, segments)))

    def head(self, states: Tensor) -> Tensor:
        """Logits of hidden states: the transform, then the projection to the vocabulary."""
        return self.output(self.transform(states))

    def head_transform(self) -> Transform:
        """Linear map, GELU and norm before the projection to the vocabulary."""
        return self.transform
