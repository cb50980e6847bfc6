"""Position-wise feed-forward networks (Vaswani et al. 2017, section 3.3).

B batch, T tokens, D model.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.dropout import Dropout


class FeedForward(nn.Module):
    """Feed-forward network FFN(x) = activation(x W1 + b1) W2 + b2, applied to each position."""

    parameter_kind = "feed-forward"

    activation: Callable[[Tensor], Tensor]

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Apply the feed-forward network to each position (formula 2 of Vaswani et al. 2017)."""
        return self.down(self.dropout(self.activation(self.up(x))))


class ReLU(FeedForward):
    """Feed-forward network with ReLU, as in Vaswani et al. (2017)."""

    activation = staticmethod(F.relu)


class GELU(FeedForward):
    """Feed-forward network with exact GELU (Hendrycks & Gimpel 2016), as in BERT and GPT."""

    activation = staticmethod(F.gelu)


class TanhGELU(FeedForward):
    """Feed-forward network with GELU by its tanh approximation, as in GPT-2."""

    activation = staticmethod(partial(F.gelu, approximate="tanh"))


class QuickGELU(FeedForward):
    """Feed-forward network with GELU by its sigmoid approximation, x sigmoid(1.702 x), as in CLIP."""

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        """Compute x sigmoid(1.702 x) (Hendrycks & Gimpel 2016, section 2)."""
        return x * torch.sigmoid(1.702 * x)


class SiLU(FeedForward):
    """Feed-forward network with SiLU or swish, x sigmoid(x) (Elfwing et al. 2017), as in models trained with Marian."""

    activation = staticmethod(F.silu)


class SwiGLU(nn.Module):
    """Gated feed-forward network (silu(x W) * x V) W2 without biases (SwiGLU, Shazeer 2020)."""

    parameter_kind = "feed-forward"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Apply the gated feed-forward network to each position (formula 6 of Shazeer 2020)."""
        return self.down(self.dropout(F.silu(self.gate(x)) * self.up(x)))


FEED_FORWARDS: dict[str, type[FeedForward] | type[SwiGLU]] = {
    "relu": ReLU,
    "gelu": GELU,
    "gelu_tanh": TanhGELU,
    "quick_gelu": QuickGELU,
    "silu": SiLU,
    "swiglu": SwiGLU,
}
