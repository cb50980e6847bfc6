"""Residual connections around sublayers, with the layer norm before (pre-norm) or after (post-norm).

B batch, T tokens, D model.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.dropout import Dropout

Sublayer = Callable[[Tensor], Tensor]


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Create a layer normalisation (Ba et al. 2016)."""
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


def rms_norm(config: ModelConfig) -> nn.RMSNorm:
    """Create a root mean square normalisation, RMSNorm (Zhang & Sennrich 2019)."""
    return nn.RMSNorm(config.d_model, eps=config.norm_eps)


NORMS: dict[str, Callable[[ModelConfig], nn.Module]] = {"layer": layer_norm, "rms": rms_norm}


class PostNorm(nn.Module):
    """Post-norm residual connection: Norm(x + Dropout(f(x))), as in Vaswani et al. (2017, sections 3.1 and 5.4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = NORMS[config.normalization](config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B T D"], f: Sublayer) -> Float[Tensor, "B T D"]:
        """Add the output of the sublayer `f` to `x`, then normalise."""
        return self.norm(x + self.dropout(f(x)))


class PreNorm(nn.Module):
    """Pre-norm residual connection: x + Dropout(f(Norm(x))), which trains without warm-up (Xiong et al. 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = NORMS[config.normalization](config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B T D"], f: Sublayer) -> Float[Tensor, "B T D"]:
        """Add the output of the sublayer `f` on the normalised `x` to `x`."""
        return x + self.dropout(f(self.norm(x)))


def embedding_norm(config: ModelConfig) -> nn.Module:
    """Create the norm after embedding + position, as in the code of BERT (Devlin et al. 2019); identity if disabled."""
    return NORMS[config.normalization](config) if config.embedding_norm else nn.Identity()


def final_norm(config: ModelConfig) -> nn.Module:
    """Create the norm after the last block: needed for pre-norm, identity for post-norm."""
    return NORMS[config.normalization](config) if config.norm == "pre" else nn.Identity()


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
