"""States without a model: their logits are a fixed random function of a sentence's seed and everything fed so far."""

import zlib
from functools import cache
from itertools import product

import numpy as np
import torch
from torch import Tensor

from heedful.text.tokenizer import BOS, EOS, PAD

WORDS = (1, 4, 5, 6)  # what the toy language may say: <unk> and three others
VOCABULARY = 7


@cache
def logits_after(seed: int, prefix: tuple[int, ...]) -> Tensor:
    """The logits of the token after `prefix`, which begins with <bos>."""
    generator = np.random.default_rng(zlib.crc32(repr((seed, prefix)).encode()))
    return torch.from_numpy(generator.normal(size=VOCABULARY) * 2.0).float()


class ToyState:
    """Remembers the whole prefix of each row, and what was asked of it."""

    def __init__(self, seeds: list[int], logits=logits_after) -> None:
        self.begin = torch.full((len(seeds),), BOS)
        self.seeds = list(seeds)
        self.prefixes: list[tuple[int, ...]] = [() for _ in seeds]
        self.logits = logits
        self.rows_per_step: list[int] = []

    def step(self, tokens: Tensor) -> Tensor:
        assert tokens.dtype == torch.long
        assert len(tokens) == len(self.prefixes) > 0
        self.rows_per_step.append(len(tokens))
        self.prefixes = [(*prefix, token) for prefix, token in zip(self.prefixes, tokens.tolist(), strict=True)]
        assert all(prefix[0] == BOS for prefix in self.prefixes)
        return torch.stack([self.logits(s, p) for s, p in zip(self.seeds, self.prefixes, strict=True)])

    def select(self, rows: Tensor) -> None:
        assert rows.dtype == torch.long
        chosen = rows.tolist()
        self.seeds = [self.seeds[row] for row in chosen]
        self.prefixes = [self.prefixes[row] for row in chosen]


def penalty(length: int, config) -> float:
    if config.penalty == "gnmt":
        return (5 + length) ** config.alpha / 6**config.alpha
    return (length if config.penalty == "average" else max(1, length - 1)) ** config.alpha


def log_probs(seed: int, prefix: tuple[int, ...], logits=logits_after) -> list[float]:
    return logits(seed, prefix).log_softmax(-1).double().tolist()


def token_scores(seed: int, output: tuple[int, ...], logits=logits_after) -> list[float]:
    """Log-probability of each token of an output, <eos> included if it has one, by feeding it token by token."""
    return [log_probs(seed, (BOS, *output[:i]), logits)[token] for i, token in enumerate(output)]


def scored(seed: int, output: tuple[int, ...], config, logits=logits_after) -> float:
    return sum(token_scores(seed, output, logits)) / penalty(len(output), config)


def all_outputs(limit: int):
    """Everything that can be said within `limit` tokens: with <eos>, or cut at the limit."""
    for length in range(limit):
        yield from ((*words, EOS) for words in product(WORDS, repeat=length))
    yield from product(WORDS, repeat=limit)


def plain_beam_search(seed: int, limit: int, config, logits=logits_after) -> list[tuple[tuple[int, ...], float]]:
    """One sentence, loops instead of tensors; without patience every step up to the limit is taken."""
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        candidates = []
        for output, total in live:
            values = log_probs(seed, (BOS, *output), logits)
            candidates += [((*output, t), total + values[t]) for t in range(VOCABULARY) if t not in (PAD, BOS)]
        candidates.sort(key=lambda c: -c[1])
        ending = [length == limit or output[-1] == EOS for output, _ in candidates]
        finished += [c for c, ends in list(zip(candidates, ending, strict=True))[: config.beam] if ends]
        live = [c for c, ends in zip(candidates, ending, strict=True) if not ends][: config.beam]
        if config.patience and len(finished) >= max(config.patience * config.beam, config.n_best):
            break
    ranked = [(output, total / penalty(len(output), config)) for output, total in finished]
    return sorted(ranked, key=lambda r: -r[1])[: config.n_best]
