"""BERTs and GPTs that are a moment's work, in every shape."""

from itertools import product

import torch
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.positions import POSITIONS

VOCABULARY = 23
# Half of all shapes: any three of their properties meet in every combination.
SHAPES = [
    (positions, norm, normalization, [None, 2][(norm == "pre") ^ (normalization == "rms") ^ (number % 2)])
    for (number, positions), norm, normalization in product(enumerate(POSITIONS), ["post", "pre"], ["layer", "rms"])
]


def shape(positions: str, norm: str, normalization: str, kv_heads: int | None, **more: object) -> ModelConfig:
    """A small model of that shape."""
    sizes = {"d_model": 24, "heads": 4, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 2, "max_positions": 61}
    given = {"positions": positions, "norm": norm, "normalization": normalization, "kv_heads": kv_heads}
    return ModelConfig(**{**sizes, **given, **more})


def stirred(model: nn.Module) -> nn.Module:
    """The model with random norms and biases: fresh ones are ones and zeros, which would hide a mistake."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(torch.rand_like(parameter) + ("norm" in name))
    return model.eval()


def ids(rows: int, length: int) -> Tensor:
    return torch.randint(5, VOCABULARY, (rows, length))


def ones(x: Tensor) -> Tensor:
    return torch.ones_like(x, dtype=torch.bool)


def padded(rows: list[Tensor], side: str) -> tuple[Tensor, Tensor]:
    """Rows of different lengths side by side, and which of their tokens are real."""
    longest = max(map(len, rows))
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    for row, given in zip(tokens, rows, strict=True):
        row[longest - len(given) if side == "left" else 0 :][: len(given)] = given
    return tokens, tokens > 0
