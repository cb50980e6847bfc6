"""Input layers: what stands between a model's inputs, such as token ids, and its stacks of blocks.

B batch, N inputs of a row, S positions of the stack, D model.
"""

from abc import ABC, abstractmethod

from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn


class InputLayer(nn.Module, ABC):
    """Base class of input layers: token ids, image patches or audio frames in, vectors of size d_model out.

    Stacks, decoders, search and the inspector only see the vectors and their padding mask.
    """

    @abstractmethod
    def embed(
        self, inputs: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Turn a padded batch of inputs into vectors.

        Args:
            inputs: token ids (B N), or rows of F features (B N F); padding may hold any values.
            padding_mask: True for real inputs.

        Returns:
            The vectors, of which those of real inputs do not depend on the padding, and their padding mask. There may
            be fewer positions than inputs, as after a convolution with a stride.
        """
