"""Encoders that predict masked inputs: the tokens of a text (BERT) and the patches of an image (SimMIM).

B batch, S tokens, D model, V vocabulary; H height, W width, C channels, R rows and Q columns of patches, F values of a
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
from heedful.nn.patches import MaskedPatchEmbedding, patchify

EPS = 1e-6  # added to the variance of a patch, which is 0 if all its values are equal


class Transform(nn.Module):
    """BERT's transform between hidden states and the projection to the vocabulary: norm(GELU(x W + b))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = NORMS[config.normalization](config)

    def forward(self, x: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        # A tied output projection compares the result with the embeddings, so it has to be in their space.
        return self.norm(F.gelu(self.dense(x)))


class NextSentenceHead(nn.Module):
    """BERT's next-sentence prediction head (Devlin et al. 2019, section 3.1): does the second passage follow?"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pooler = Pooler(config, "first")
        self.output = nn.Linear(config.d_model, 2)

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B 2"]:
        """Compute the logits of "follows" and of "does not follow"."""
        return self.output(self.pooler(states, padding_mask))


class MaskedLanguageModel(BackboneModel):
    """Masked language model (BERT, Devlin et al. 2019, section 3.1): an encoder with a head for masked tokens.

    With `pairs`, for training on pairs of passages, it also has a head for next-sentence prediction.
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
        return self.head(self.backbone(tokens, all_real(tokens, padding_mask), segments))

    def head(self, states: Tensor) -> Tensor:
        return self.output(self.transform(states))

    def head_transform(self) -> Transform:
        return self.transform


class MaskedPatchModel(BackboneModel):
    """Masked-patch model (SimMIM, Xie et al. 2022): an image encoder whose linear head predicts pixels."""

    logit_axes = ("row", "column", "pixel")
    predicts_tokens = False

    def __init__(self, config: ModelConfig, image: ImageConfig) -> None:
        super().__init__()
        self.backbone = EncoderOnly(config, MaskedPatchEmbedding(image, config.d_model))
        self.output = nn.Linear(config.d_model, image.channels * image.patch**2)
        initialise(self, config)

    def forward(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"], masked: Bool[Tensor, "B R Q"]
    ) -> Float[Tensor, "B R Q F"]:
        """Predict the pixels of every patch, on the scale of `normalise_patches`."""
        return self.output(self.states(inputs, padding_mask, masked))

    def states(
        self, inputs: Float[Tensor, "B H W C"], padding_mask: Bool[Tensor, "B H"], masked: Bool[Tensor, "B R Q"]
    ) -> Float[Tensor, "B R Q D"]:
        """Compute the hidden state of each patch, without the class token."""
        vectors, real = self.backbone.embedding.embed_masked(inputs, padding_mask, masked)
        states, _ = self.backbone.encode_vectors(vectors, real)
        # B S D to the last RQ positions, B RQ D, to B R Q D.
        return states[:, -masked[0].numel() :].unflatten(1, masked.shape[1:])


def normalise_patches(inputs: Float[Tensor, "B H W C"], patch: int) -> Float[Tensor, "B R Q F"]:
    """Normalise the pixels of each patch to mean 0 and variance 1.

    Encoders trained to predict such pixels learn better representations (He et al. 2022, section 3 and Table 1d).
    """
    patches = patchify(inputs.float(), patch)
    variance, mean = torch.var_mean(patches, dim=-1, correction=0, keepdim=True)
    return (patches - mean) / (variance + EPS).sqrt()


def denormalise_patches(
    predicted: Float[Tensor, "B R Q F"], inputs: Float[Tensor, "B H W C"], patch: int
) -> Float[Tensor, "B R Q F"]:
    """Give predicted patches the mean and variance of the patches of `inputs`: the inverse of `normalise_patches`."""
    variance, mean = torch.var_mean(patchify(inputs.float(), patch), dim=-1, correction=0, keepdim=True)
    return predicted * (variance + EPS).sqrt() + mean
