"""Model of masked patches: an encoder of pictures with hidden patches, whose pixels it predicts (Xie et al. 2022).

B batch, H height, W width, C channels, R rows and Q columns of patches, F pixels of a patch, D model.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.architectures.backbone import BackboneModel, EncoderOnly
from heedful.architectures.initialization import initialise
from heedful.config.modalities import ImageConfig
from heedful.config.schema import ModelConfig
from heedful.nn.patches import HidingPatchEmbedding, cut

EPS = 1e-6  # added to the variance of a patch: one of a single colour has none


class MaskedPatchModel(BackboneModel):
    """Model of masked patches: an encoder over all places of a picture, and a linear layer that predicts pixels."""

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
        return states[:, -hidden[0].numel() :].unflatten(1, hidden.shape[1:])


def normalised(inputs: Float[Tensor, "B H W C"], patch: int) -> Float[Tensor, "B R Q F"]:
    """Scale the pixels of each patch to mean 0 and variance 1: the target of He et al. (2022, section 3)."""
    patches = cut(inputs.float(), patch)
    variance, mean = torch.var_mean(patches, dim=-1, correction=0, keepdim=True)
    return (patches - mean) / (variance + EPS).sqrt()


def restored(
    predicted: Float[Tensor, "B R Q F"], inputs: Float[Tensor, "B H W C"], patch: int
) -> Float[Tensor, "B R Q F"]:
    """Give predicted patches the mean and the variance that the patches of a picture have: undo `normalised`."""
    variance, mean = torch.var_mean(cut(inputs.float(), patch), dim=-1, correction=0, keepdim=True)
    return predicted * (variance + EPS).sqrt() + mean
