"""Both ends of a model: embeddings of token ids, and the projection to a vocabulary (Vaswani et al. 2017, section 3.4).

Images, video and audio enter through other subclasses of `InputLayer`.

B batch, N inputs in a row, F features, S positions of the stack, T tokens, D model, V vocabulary, R rows of a search.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.config.schema import TextModelConfig

# Output bias of tokens that are never generated: their probability is exactly 0 in float32, and unlike minus infinity
# it leaves a loss with label smoothing finite.
NEVER = -1e4

MAX_BEAM_ROWS = 7  # up to here, the product by columns is faster than torch's linear layer on a CPU


class InputLayer(nn.Module, ABC):
    """Base class of input layers: token ids, images, videos or audio frames in, vectors of size d_model out.

    Stacks, decoders, search and the inspector see only the vectors and their padding mask.
    """

    parameter_kind = "embeddings"

    @abstractmethod
    def embed(
        self, inputs: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn a padded batch of inputs into vectors.

        Args:
            inputs: Token ids (B N), or inputs with features (B N *F), such as audio frames; padding may have any value.
            padding_mask: True for real inputs.

        Returns:
            The vectors and their padding mask. The vectors of real inputs do not depend on the padding. S may differ
            from N, for example after a convolution with a stride.
        """


class Embedding(InputLayer):
    """Token embedding: one vector per token, drawn from N(0, 1 / d_model) and scaled by sqrt(d_model).

    The scaled vectors have variance 1. Without `config.scale_embeddings` the vectors are not scaled.
    """

    def __init__(self, vocab: int, config: TextModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, config.d_model))
        # Rows of length about 1: as a tied output projection they give logits of variance 1 for normalised states.
        nn.init.normal_(self.weight, std=config.d_model**-0.5)
        self.scale = config.d_model**0.5 if config.scale_embeddings else 1.0

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        # Rows are small, because they may be shared with the output projection (section 3.4). Scaling makes them as
        # large as the positions that are added to them.
        return F.embedding(tokens, self.weight) * self.scale

    def embed(
        self, inputs: Int[Tensor, "B T"], padding_mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T D"], Bool[Tensor, "B T"]]:
        return self(inputs), padding_mask


class OneSegment(nn.Module):
    """Segment embedding of models without segments: adds nothing."""

    def forward(self, x: Float[Tensor, "B T D"], segments: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return x


class Segments(nn.Module):
    """Segment embedding (Devlin et al. 2019): one trained vector per segment, such as question and answer."""

    parameter_kind = "segments"

    def __init__(self, config: TextModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.segments, config.d_model)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)

    def forward(self, x: Float[Tensor, "B T D"], segments: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Add the vector of each token's segment, counted from 0; segments beyond the table use its last vector."""
        # A text may have more segments than the model was trained with.
        return x + self.table(segments.clamp(max=self.table.num_embeddings - 1))


class OutputProjection(nn.Linear):
    """Linear layer to the logits of a vocabulary, with a faster product for the 2 to 7 rows of a beam on a CPU.

    With so few rows in x, computing x W^T takes up to twice as long as computing W x^T (docs/performance.md).
    """

    def forward(self, input: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        is_beam = input.dim() == 2 and 1 < len(input) <= MAX_BEAM_ROWS
        if is_beam and input.device.type == "cpu" and input.dtype is torch.float32:
            return self.by_columns(input)
        return super().forward(input)

    def by_columns(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R V"]:
        """Compute the logits as columns, (W x^T + b)^T, and copy them to rows."""
        columns = self.weight @ x.T
        if self.bias is not None:
            columns = columns + self.bias[:, None]
        return columns.T.contiguous()


def only_excludes_tokens(bias: Tensor) -> bool:
    """Return True if an output bias excludes tokens from generation and is zero for all others."""
    is_silenced = bias == NEVER  # (V,)
    return bool(is_silenced.any()) and not bool(bias[~is_silenced].any())
