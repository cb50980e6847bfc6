"""The numbers of the documents' examples, and the parts of heedful that the other modules apply to them."""

import json
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.nn.attention import scaled_dot_product

FOLDER = Path(__file__).parent
EXAMPLES = tomllib.loads((FOLDER / "rows.toml").read_text(encoding="utf-8"))["examples"]
LABORATORY = FOLDER.parent / "laboratory"
SMALL = ModelConfig(d_model=24, heads=4, d_ff=48, encoder_layers=2, decoder_layers=2, max_positions=512)

# What a function returns: "right", "document" if that is computed as well, and whatever else a text shows.
Values = dict[str, Any]


def example(name: str) -> Tensor:
    """The numbers of an example: a vector, a matrix, or the vectors of words, row by row."""
    numbers = EXAMPLES[name]
    return torch.tensor(list(numbers.values()) if isinstance(numbers, dict) else numbers, dtype=torch.float64)


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the weights of one head."""
    output, weights = scaled_dot_product(q[None, None], k[None, None], v[None, None], q.new_zeros(1, 1, 1, len(k)))
    return output[0, 0], weights[0, 0]


def small_model(**changes: Any) -> EncoderDecoder:
    """An encoder-decoder with random weights."""
    torch.manual_seed(0)
    return EncoderDecoder(replace(SMALL, **changes), 23, 23).eval()


def everywhere(tokens: Tensor) -> Tensor:
    """The padding mask of rows without padding."""
    return torch.ones_like(tokens, dtype=torch.bool)


def measured(page: str, quantity: str, **case: Any) -> float:
    """The mean that an experiment of the laboratory has stored."""
    lines = (LABORATORY / f"{page}.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    [mean] = [line["mean"] for line in map(json.loads, lines) if line["quantity"] == quantity and case == line["case"]]
    return mean


def same(document: str | float, right: str | float) -> bool:
    """True if a value of a document is the right one; printed digits may be off by half a unit of the last one."""
    if isinstance(right, str):
        return document == right
    unit = 1e-5
    if isinstance(document, str):
        printed = Decimal(document)
        unit = 10.0 ** (printed.adjusted() - len(printed.as_tuple().digits) + 1)
    return abs(float(document) - right) <= 0.5001 * unit  # a little more than half, because of rounding errors
