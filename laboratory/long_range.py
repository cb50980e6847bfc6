"""Tasks whose answers depend on a token at a known distance: recall, agreement and copying."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

SYMBOLS, NOISE = 8, 8  # symbols are ids 0 to 7, noise 8 to 15; odd symbols are plural nouns
COPY, SINGULAR, VOCABULARY = 16, 17, 19  # the plural verb is 18


@dataclass(frozen=True)
class Task:
    """A task whose answer depends on a token at a distance.

    Attributes:
        rows: draws a number of rows at a distance: tokens, and the answers to predict at the last positions.
        max_distance: the longest distance in training.
        chance: the accuracy of guessing.
    """

    rows: Callable[[int, int], tuple[Tensor, Tensor]]
    max_distance: int
    chance: float

    @property
    def distances(self) -> list[int]:
        """Powers of two up to twice the longest distance in training."""
        return [2**power for power in range(self.max_distance.bit_length() + 1)]


def recall(distance: int, count: int) -> tuple[Tensor, Tensor]:
    """A symbol, then noise; the answer is the symbol."""
    symbols = torch.randint(0, SYMBOLS, (count, 1))
    noise = torch.randint(SYMBOLS, SYMBOLS + NOISE, (count, distance))
    return torch.cat([symbols, noise], dim=1), symbols


def agreement(distance: int, count: int) -> tuple[Tensor, Tensor]:
    """A noun, then nouns of either number among noise; the answer is the verb in the number of the first noun."""
    words = torch.randint(0, SYMBOLS + NOISE, (count, distance + 1))
    words[:, 0] %= SYMBOLS
    return words, SINGULAR + words[:, :1] % 2


def copy(distance: int, count: int) -> tuple[Tensor, Tensor]:
    """Symbols, a copy sign, and all symbols but the last; each answer is the token `distance` positions back."""
    symbols = torch.randint(0, SYMBOLS, (count, distance))
    return torch.cat([symbols, torch.full((count, 1), COPY), symbols[:, :-1]], dim=1), symbols


TASKS = {
    "recall": Task(recall, max_distance=64, chance=1 / SYMBOLS),
    "agreement": Task(agreement, max_distance=64, chance=1 / 2),
    "copy": Task(copy, max_distance=16, chance=1 / SYMBOLS),
}
