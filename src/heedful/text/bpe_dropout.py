"""BPE dropout (Provilkov et al. 2020, algorithm 1): merges are skipped at random, so that spellings vary."""

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

Pair = tuple[int, int]
Merges = Mapping[Pair, tuple[int, int]]  # two neighbours -> (rank, the piece they become); low ranks merge first

WINDOW = 128  # symbols; a word of a million characters would take a million squared steps


def merge_with_dropout(symbols: Sequence[int], merges: Merges, rate: float, rng: random.Random) -> list[int]:
    """Merge the characters of one word by BPE, each possible merge being skipped with probability `rate` at each step.

    A word longer than `WINDOW` symbols is cut there, which only loses the merges across the cuts.
    """
    merged = []
    for start in range(0, len(symbols), WINDOW):
        merged += _merge(list(symbols[start : start + WINDOW]), merges, rate, rng)
    return merged


def _merge(symbols: list[int], merges: Merges, rate: float, rng: random.Random) -> list[int]:
    while True:
        found = [
            (*merges[pair], place)
            for place, pair in enumerate(pairwise(symbols))
            if pair in merges and rng.random() >= rate
        ]
        if not found:
            return symbols
        _, piece, place = min(found)
        symbols[place : place + 2] = [piece]
