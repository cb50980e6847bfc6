"""Convolutions over padded batches: layout with zeros before and between documents, windows, and cache.

B batch, T tokens, C columns, D model, E channels, N real tokens, W windows of S columns, R rows of a search.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


class Spacing:
    """Layout of a padded batch in columns: every row ends at the last column and has a gap before each document.

    With this layout, a convolution whose kernel has `gap` + 1 columns never covers tokens of two documents, and its
    output at a token does not depend on the padding. The `positions` of tokens count from 0 in each document.
    """

    def __init__(self, padding_mask: Bool[Tensor, "B T"], positions: Int[Tensor, "B T"], gap: int) -> None:
        self.shape = padding_mask.shape
        # A token takes one column, and the first token of a document also the gap before it; padding takes none.
        sizes = padding_mask.long() + gap * (padding_mask & (positions == 0))
        after = sizes.flip(1).cumsum(1).flip(1) - sizes  # columns after each token in its row
        columns = int(after.masked_fill(~padding_mask, 0).max()) + 1
        first = torch.arange(len(padding_mask), device=padding_mask.device)[:, None] * columns
        self._token: Int[Tensor, " N"] = padding_mask.flatten().nonzero()[:, 0]
        self._column: Int[Tensor, " N"] = (first + columns - 1 - after)[padding_mask]
        # True for columns with a token, False for gaps and the columns before the first one.
        self.real: Bool[Tensor, "B C 1"] = padding_mask.new_zeros(len(padding_mask), columns, 1)
        self.real.view(-1)[self._column] = True

    def spread(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B C D"]:
        """Copy the real tokens of a padded batch to their columns; all other columns are zeros."""
        columns = x.new_zeros(self.real.numel(), x.size(-1))
        return columns.index_copy(0, self._column, x.flatten(0, 1)[self._token]).unflatten(0, self.real.shape[:2])

    def collect(self, x: Float[Tensor, "B C D"]) -> Float[Tensor, "B T D"]:
        padded = x.new_zeros(self.shape.numel(), x.size(-1))
        return padded.index_copy(0, self._token, x.flatten(0, 1)[self._column]).unflatten(0, self.shape)


def windows(x: Float[Tensor, "B C D"], size: int, dilation: int = 1) -> Float[Tensor, "B W SD"]:
    """Concatenate each vector with `size` - 1 later ones, each `dilation` columns after the one before.

    A linear layer over these windows is a convolution.
    """
    count = x.size(1) - (size - 1) * dilation
    return torch.cat([x[:, first : first + count] for first in range(0, size * dilation, dilation)], dim=-1)


def centred_windows(x: Float[Tensor, "B C D"], size: int) -> Float[Tensor, "B C SD"]:
    """Concatenate each vector with its neighbours on both sides, or with zeros beyond the ends.

    If `size` is even, there is one more neighbour after the vector than before it.
    """
    return windows(F.pad(x, (0, 0, (size - 1) // 2, size // 2)), size)


class ConvolutionCache:
    """Cache of a stack of causal convolutions: the last inputs of each layer, as many as its kernel covers.

    A kernel of S columns that are `dilation` columns apart covers P = (S - 1) x `dilation` earlier columns.
    """

    def __init__(self, inputs: list[Float[Tensor, "R P E"]]) -> None:
        self.inputs = inputs

    def extend(self, layer: int, x: Float[Tensor, "R C E"]) -> Float[Tensor, "R C2 E"]:
        """Prepend the cached inputs of a layer to C new ones, and cache the last P inputs."""
        # No later step needs inputs from before the last P.
        extended = torch.cat([self.inputs[layer], x], dim=1)
        self.inputs[layer] = extended[:, x.size(1) :]
        return extended

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.inputs = [inputs[rows] for inputs in self.inputs]
