"""Encoders that predict what was masked in their input: BERT the tokens of a text, SimMIM the patches of an image.

B batch, S tokens, D model, V vocabulary; H height, W width, C channels, R rows and Q columns of patches, F pixels of a
patch.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.backbone import BackboneModel
from heedful.architectures.heads import Pooler
from heedful.architectures.model import all_real
from heedful.architectures.parameters import initialise
from heedful.architectures.transformer.layers import NORMS
from heedful.architectures.transformer.model import EncoderOnly
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig
from heedful.nn.embedding import Embedding
from heedful.nn.patches import HidingPatchEmbedding, cut

EPS = 1e-6  # added to the variance of a patch: one of a single colour has none


class Transform(nn.Module):
    """Transform of hidden states before the projection to the vocabulary, as in BERT: norm(GELU(x W + b))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = NORMS[config.normalization](config)

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        # From the space of hidden states to that of the embeddings, to which the output is tied.
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
    """Masked language model (BERT, Devlin et al. 2019, section 3.1): an encoder with a head for masked tokens.

    With pairs of passages it has another one, for next sentences.
    """

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
        return self.head(self.backbone(tokens, all_real(tokens, padding_mask), segments))

    def head(self, states: Tensor) -> Tensor:
        """Logits of hidden states: the transform, then the projection to the vocabulary."""
        return self.output(self.transform(states))

    def head_transform(self) -> Transform:
        """Linear map, GELU and norm before the projection to the vocabulary."""
        return self.transform


class MaskedPatchModel(BackboneModel):
    """Model of masked patches (SimMIM, Xie et al. 2022): an encoder of images, whose linear head predicts pixels."""

    logit_axes = ("row", "column", "pixel")
    predicts_tokens = False

    def __init__(self, config: ModelConfig, image: ImageConfig) -> None:
        super().__init__()
        self.backbone = EncoderOnly(config, HidingPatchEmbedding(image, config.d_model))
        self.output = nn.Linear(config.d_model, image.channels * image.patch**2)
        initialise(self, config)

    def forward(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"], hidden: Bool[Tensor, "B R Q"]
    ) -> Float[Tensor, "B R Q F"]:
        """Predict the pixels of every patch, as `normalised` gives them."""
        return self.output(self.states(inputs, padding_mask, hidden))

    def states(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"], hidden: Bool[Tensor, "B R Q"]
    ) -> Float[Tensor, "B R Q D"]:
        """Compute the hidden state of each place, without that of the class token."""
        vectors, real = self.backbone.embedding.embed_visible(inputs, padding_mask, hidden)
        states, _ = self.backbone.encode_vectors(vectors, real)
        # B S D without the class token, if there is one, as a grid of B R Q D.
        return states[:, -hidden[0].numel() :].unflatten(1, hidden.shape[1:])


def normalised(inputs: Float[Tensor, "B H W C"], patch: int) -> Float[Tensor, "B R Q F"]:
    """Scale the pixels of each patch to mean 0 and variance 1: the target of He et al. (2022, section 3)."""
    # Such targets gave better representations than raw pixels (their Table 1d).
    patches = cut(inputs.float(), patch)
    variance, mean = torch.var_mean(patches, dim=-1, correction=0, keepdim=True)
    return (patches - mean) / (variance + EPS).sqrt()


def restored(
    predicted: Float[Tensor, "B R Q F"], inputs: Float[Tensor, "B H W C"], patch: int
) -> Float[Tensor, "B R Q F"]:
    """Give predicted patches the mean and the variance that the patches of an image have: undo `normalised`."""
    variance, mean = torch.var_mean(cut(inputs.float(), patch), dim=-1, correction=0, keepdim=True)
    return predicted * (variance + EPS).sqrt() + mean
