"""A language model without weights: its logits are a fixed function of everything that it has read of a row."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.architectures import LanguageModel

Logits = Callable[[tuple[int, ...]], Tensor]


def random_logits(vocab: int, spread: float = 1.5) -> Logits:
    """Different after everything that can be read."""

    def after(read: tuple[int, ...]) -> Tensor:
        generator = np.random.default_rng(zlib.crc32(repr(read).encode()))
        return torch.from_numpy(generator.normal(size=vocab) * spread).float()

    return after


def script(vocab: int, start: int, tokens: Sequence[int]) -> Logits:
    """Certain of one token after another, behind the first `start` tokens read."""

    def after(read: tuple[int, ...]) -> Tensor:
        return torch.full((vocab,), -100.0).index_fill(0, torch.tensor(tokens[len(read) - start]), 100.0)

    return after


class ToyLanguageModel(LanguageModel):
    """Keeps the states that it started, and what each of them read of its rows."""

    def __init__(self, logits: Logits) -> None:
        nn.Module.__init__(self)
        self.anchor = nn.Parameter(torch.zeros(1))
        self.logits = logits
        self.states: list[ToyPrefixes] = []

    def start(self, prompts: Tensor, padding_mask: Tensor) -> Any:
        assert not self.training
        self.states.append(ToyPrefixes(prompts, padding_mask, self.logits))
        return self.states[-1]


class ToyPrefixes:
    """What each row was fed; `everything` holds that of rows that have gone, too."""

    def __init__(self, prompts: Tensor, padding_mask: Tensor, logits: Logits) -> None:
        assert padding_mask[:, -1].all()
        assert (padding_mask.int().diff(dim=1) >= 0).all()  # padded on the left
        rows = [row[real].tolist() for row, real in zip(prompts, padding_mask, strict=True)]
        self.begin = prompts[:, -1]
        self.read = [tuple(row[:-1]) for row in rows]
        self.everything = [[tuple(row)] for row in rows]
        self.places = list(range(len(rows)))
        self.width = prompts.size(1) - 1  # tokens held for each row, padding included
        self.logits = logits

    def step(self, tokens: Tensor) -> Tensor:
        assert len(tokens) == len(self.read) > 0
        self.width += 1
        self.read = [(*read, token) for read, token in zip(self.read, tokens.tolist(), strict=True)]
        for place, read in zip(self.places, self.read, strict=True):
            self.everything[place].append(read)
        return torch.stack([self.logits(read) for read in self.read])

    def select(self, rows: Tensor) -> None:
        self.read = [self.read[row] for row in rows.tolist()]
        self.places = [self.places[row] for row in rows.tolist()]
