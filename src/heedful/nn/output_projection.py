"""Output projection: hidden states to the logits of a vocabulary.

R rows, D model, V vocabulary.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

FEW = 8  # rows from which torch's linear layer takes no longer than the product by columns, on a CPU


class OutputProjection(nn.Linear):
    """Linear layer to the logits of a vocabulary, with a faster product for the few rows of a beam on a CPU.

    There 2 to 7 rows times the matrix of a whole vocabulary take up to twice as long as that matrix times the rows as
    columns (docs/performance.md).
    """

    def forward(self, input: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """Compute the logits x W^T + b of hidden states x."""
        few = input.dim() == 2 and 1 < len(input) < FEW
        if few and input.device.type == "cpu" and input.dtype is torch.float32:
            return self.by_columns(input)
        return super().forward(input)

    def by_columns(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R V"]:
        """Compute the logits as columns, (W x^T + b)^T, and copy them into rows."""
        columns = self.weight @ x.T
        if self.bias is not None:
            columns = columns + self.bias[:, None]
        return columns.T.contiguous()
