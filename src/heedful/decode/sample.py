"""One token a row, drawn by chance that belongs to the row alone.

R rows, V vocabulary. Chance is raw Philox (Salmon et al. 2011) keyed by the seed of a request and the number of the
token, and probabilities are summed in float64 on the CPU: neither the batch nor the device has a part in it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.data import random_numbers
from heedful.decode.generation_row import GenerationRow
from heedful.decode.sampling_filters import narrow
from heedful.errors import RunError


def sample(
    logits: Float[Tensor, "R V"], rows: Sequence[GenerationRow], never: Sequence[int]
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """Draw the next token of each row from what its configuration leaves.

    Args:
        logits: of the model, on any device.
        rows: what each row has said, and how it wants to go on.
        never: ids that are never an output.

    Returns:
        Token ids, and log P of each under the model as it is, with nothing narrowed; both on the CPU.

    Raises:
        RunError: the logits are not numbers.
    """
    logits = logits.cpu().double()
    if logits.isnan().any():
        raise RunError("the model's output is not a number (NaN): its weights are damaged or its training diverged")
    chances = torch.tensor([uniform(row.config.seed, len(row.output)) for row in rows], dtype=torch.float64)
    tokens = draw(narrow(logits, rows, never), chances)
    return tokens, logits.log_softmax(1).gather(1, tokens[:, None])[:, 0]


def draw(logits: Float[Tensor, "R V"], chances: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """The token at which the cumulative probability, summed by id, first exceeds a number in [0, 1)."""
    cumulative = logits.softmax(1).cumsum(1)
    places = chances[:, None] * cumulative[:, -1:]  # rounding leaves the last sum a little beside 1
    return torch.searchsorted(cumulative, places, right=True)[:, 0]


def uniform(seed: int, step: int) -> float:
    """A number in [0, 1), a multiple of 2^-53, that is a function of seed and step."""
    return int(random_numbers.draw(1, seed, step)[0] >> 11) * 2.0**-53
