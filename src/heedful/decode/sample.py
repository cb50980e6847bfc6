"""Sampling of the next token of each row, with random numbers that depend on the row alone.

R rows, V vocabulary. Random numbers are raw Philox (Salmon et al. 2011) keyed by the seed of a request and the number
of the token, and probabilities are summed in float64 on the CPU: neither the batch nor the device changes a sample.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.data import random_numbers
from heedful.decode.generation_row import GenerationRow
from heedful.decode.inference import check_numbers
from heedful.decode.sampling_filters import apply_filters


def sample(
    logits: Float[Tensor, "R V"], rows: Sequence[GenerationRow], never: Sequence[int]
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """Sample the next token of each row from the distribution that its settings leave (temperature, top-k, top-p ...).

    Args:
        logits: the logits of the next token, on any device.
        rows: the rows under generation, with their output so far and their settings.
        never: ids that are never generated.

    Returns:
        Token ids, and log P of each token under the unfiltered model; both on the CPU.

    Raises:
        RunError: the logits contain NaN.
    """
    logits = logits.cpu().double()
    check_numbers(logits)
    chances = torch.tensor([uniform(row.config.seed, len(row.output)) for row in rows], dtype=torch.float64)
    tokens = draw(apply_filters(logits, rows, never), chances)
    return tokens, logits.log_softmax(1).gather(1, tokens[:, None])[:, 0]


def draw(logits: Float[Tensor, "R V"], chances: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Pick the token at which the cumulative probability, summed by id, first exceeds a given number in [0, 1)."""
    cumulative = logits.softmax(1).cumsum(1)
    places = chances[:, None] * cumulative[:, -1:]  # rounding leaves the last sum close to 1, not at 1
    return torch.searchsorted(cumulative, places, right=True)[:, 0]


def uniform(seed: int, step: int) -> float:
    """Random number in [0, 1), a multiple of 2^-53, that is a function of seed and step."""
    return int(random_numbers.draw(1, seed, step)[0] >> 11) * 2.0**-53
