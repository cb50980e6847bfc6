"""Alignment check: finds lines of two parallel files that do not translate each other.

A shuffled or shifted translation teaches nothing. Of translations, long lines stand beside long ones, questions beside
questions, and numbers beside numbers. Where none of these is correlated in hundreds of lines, none belong together.
"""

import numpy as np

from heedful.data.proposals.pair_survey import Side

BLOCK = 500  # lines that are looked at together, so that a shift in the middle of a text is seen
FEWEST = 40  # lines from which anything can be concluded
RELATED = 0.3  # a correlation: of 500 lines of translations the best one is 0.8 to 1, of unrelated lines 0.1, at random


def strangers(source: Side, target: Side) -> list[tuple[int, int]]:
    """Return the ranges of lines in which the two sides of a parallel text do not seem to be translations.

    Returns:
        Pairs of the first line, from 0, and the line behind the last; none where all blocks go together, or where too
        little differs between lines to tell.
    """
    count = len(source.characters)
    edges = np.linspace(0, count, max(1, count // BLOCK) + 1).astype(int)
    here, there = features(source), features(target)
    runs: list[tuple[int, int]] = []
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if are_strangers(here[:, begin:end], there[:, begin:end]):
            follows = bool(runs) and runs[-1][1] == begin
            runs.append((runs.pop()[0] if follows else begin, end))
    return runs


def features(side: Side) -> np.ndarray:
    """Return features of each line, (4, n): log(1 + characters), log(1 + words), ends with "?", has a digit."""
    return np.stack([np.log1p(side.characters), np.log1p(side.words), side.questions, side.numbers]).astype(float)


def are_strangers(here: np.ndarray, there: np.ndarray) -> bool:
    """True if no feature of two sides, (4, n) each, is correlated; False if too little differs to tell."""
    varies = (np.ptp(here, axis=1) > 0) & (np.ptp(there, axis=1) > 0)
    if here.shape[1] < FEWEST or not varies.any():
        return False
    correlations = [np.corrcoef(x, y)[0, 1] for x, y in zip(here[varies], there[varies], strict=True)]
    return max(correlations) < RELATED
