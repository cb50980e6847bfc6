"""Dual encoder for images and texts (CLIP, Radford et al. 2021): two backbones with a shared vector space.

B images, C texts, N rows of pixels with F features each, T tokens, P projection.
"""

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float32, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone
from heedful.architectures.dual_encoder.settings import DualEncoderConfig
from heedful.architectures.heads import POOLINGS
from heedful.architectures.model import Model, Names
from heedful.architectures.parameters import initialise
from heedful.config.schema import ModelConfig
from heedful.nn.embedding import Embedding, InputLayer
from heedful.registry import MODELS, import_attribute

MAX_SCALE = 100.0  # largest factor of the cosine similarities: larger ones make CLIP's training unstable (section 2.5)


class ProjectedEncoder(nn.Module):
    """Image or text encoder: a backbone, pooling, and a bias-free linear map to unit vectors."""

    def __init__(self, config: ModelConfig, embedding: InputLayer, projection: int) -> None:
        super().__init__()
        self.backbone: Backbone[Any] = import_attribute(MODELS["transformer"][config.family])(config, embedding)
        self.pool = POOLINGS[config.pooling or self.backbone.pooling]
        self.project = nn.Linear(config.d_model, projection, bias=False)

    def forward(self, inputs: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> Float32[Tensor, "B P"]:
        """Compute the vector of each image or text, scaled to length 1."""
        # In float32 even under autocast, because cosines are divided by a temperature as low as 0.01.
        return F.normalize(self.project(self.pool(*self.backbone.encode(inputs, padding_mask))).float(), dim=-1)


class DualEncoder(Model):
    """Dual encoder: an image encoder and a text encoder, whose vectors are compared by cosine similarity."""

    logit_axes = ("text",)
    predicts_tokens = False
    has_segments = False

    def __init__(self, config: DualEncoderConfig, images: InputLayer, vocab: int) -> None:
        super().__init__()
        image, text = config.image(), config.text()
        self.size = config.projection  # size of the vectors
        self.pictures = ProjectedEncoder(image, images, self.size)  # `pictures` is the name in stored weights
        self.texts = ProjectedEncoder(text, Embedding(vocab, text), self.size)
        # The logarithm of the inverse temperature, so that an update multiplies the temperature by a factor. It is a
        # vector of one number, because a scalar has no rows that could be sharded (parallel.shard).
        self.log_scale = nn.Parameter(torch.tensor([-math.log(config.temperature)]))
        initialise(self, config)

    def forward(
        self,
        images: Shaped[Tensor, "B N *F"],
        image_mask: Bool[Tensor, "B N"],
        texts: Int[Tensor, "C T"],
        text_mask: Bool[Tensor, "C T"],
    ) -> Float32[Tensor, "B C"]:
        """Compute the logits of images (rows) and texts (columns): cosine similarities divided by the temperature."""
        # B P times P C: each image with each text of the batch.
        return self.scale * self.pictures(images, image_mask) @ self.texts(texts, text_mask).T

    @property
    def scale(self) -> Float32[Tensor, " 1"]:
        return AtMost.apply(self.log_scale.float(), math.log(MAX_SCALE)).exp()

    @property
    def line(self) -> str:
        return "src"

    def embedding_of(self, line: str) -> Embedding:
        del line
        return self.texts.backbone.embedding

    def token_rows(self) -> Names:
        return {"texts.backbone.embedding.weight": "source"}

    def max_positions(self) -> int | None:
        return cast("Any", self.texts.backbone.stack).positions.limit


class AtMost(torch.autograd.Function):
    """Minimum of a number and a limit; at or above the limit, only gradients that would lower the number pass through.

    The gradient of `torch.minimum` is zero above the limit, so the number could never fall below the limit again.
    """

    @staticmethod
    def forward(ctx, x: Tensor, limit: float) -> Tensor:
        ctx.save_for_backward(x < limit)
        return x.clamp(max=limit)

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        [below] = ctx.saved_tensors
        [gradient] = grad_outputs
        return gradient.where(below | (gradient > 0), 0.0), None
