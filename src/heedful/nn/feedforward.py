"""Position-wise feed-forward networks (Vaswani et al. 2017, section 3.3).

B batch, T tokens, D model.
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.dropout import Dropout


class FeedForward(nn.Module):
    """FFN(x) = activation(x W1 + b1) W2 + b2, the same for every position."""

    activation: Callable[[Tensor], Tensor]

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Formula 2 of the paper."""
        return self.down(self.dropout(self.activation(self.up(x))))


class ReLU(FeedForward):
    """The paper's."""

    activation = staticmethod(F.relu)


class GELU(FeedForward):
    """That of BERT and GPT (Hendrycks & Gimpel 2016), with the exact normal distribution."""

    activation = staticmethod(F.gelu)


class TanhGELU(FeedForward):
    """GELU by its approximation with a hyperbolic tangent, as in GPT-2."""

    activation = staticmethod(partial(F.gelu, approximate="tanh"))


class SiLU(FeedForward):
    """x sigmoid(x) (Elfwing et al. 2017), also called swish, as in the models that Marian's authors trained."""

    activation = staticmethod(F.silu)


class SwiGLU(nn.Module):
    """(silu(x W) * x V) W2 without biases: values of which a gate lets through a part (Shazeer 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Formula 6 of the article."""
        return self.down(self.dropout(F.silu(self.gate(x)) * self.up(x)))


FEED_FORWARDS: dict[str, type[FeedForward] | type[SwiGLU]] = {
    "relu": ReLU,
    "gelu": GELU,
    "gelu_tanh": TanhGELU,
    "silu": SiLU,
    "swiglu": SwiGLU,
}
