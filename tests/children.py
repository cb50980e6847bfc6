"""BERTs and GPTs that are a moment's work, in every shape."""

from itertools import product
from typing import TypeVar

import torch
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.registry import POSITIONS

VOCABULARY = 23
# A quarter of all shapes: any two of their properties meet in every combination.
SHAPES = [
    (positions, norm, ["layer", "rms"][(pre + number) % 2], [None, 2][(pre + number // 2) % 2])
    for (number, positions), (pre, norm) in product(enumerate(POSITIONS), enumerate(["post", "pre"]))
]

M = TypeVar("M", bound=nn.Module)


def shape(positions: str, norm: str, normalization: str, kv_heads: int | None, **more: object) -> ModelConfig:
    """A small model of that shape."""
    sizes = {"d_model": 24, "heads": 4, "d_ff": 37, "encoder_layers": 2, "decoder_layers": 2, "max_positions": 97}
    given = {"positions": positions, "norm": norm, "normalization": normalization, "kv_heads": kv_heads}
    return ModelConfig(**{**sizes, **given, **more})


def stirred(model: M) -> M:
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
