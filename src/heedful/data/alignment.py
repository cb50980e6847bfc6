"""Whether the lines of two files belong together: a shuffled or shifted translation teaches nothing.

Of translations, long ones stand beside long ones, questions beside questions, and numbers beside numbers. Where none
of these goes together in hundreds of lines, the lines are strangers.
"""

import numpy as np

from heedful.data.pair_survey import Side

BLOCK = 500  # lines that are looked at together, so that a shift in the middle of a text is seen
FEWEST = 40  # lines from which anything can be concluded
RELATED = 0.3  # a correlation: of 500 lines of translations the best one is 0.8 to 1, of strangers 0.1, at random


def strangers(source: Side, target: Side) -> list[tuple[int, int]]:
    """Return the runs of lines whose two sides do not seem to belong together.

    Returns:
        From which line on, counted from 0, and up to which one, not included; none where all go together, or where
        too little differs between lines to tell.
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
    """Return what can be compared across languages, (4, n): sizes in characters and words, question mark, number."""
    return np.stack([np.log1p(side.characters), np.log1p(side.words), side.questions, side.numbers]).astype(float)


def are_strangers(here: np.ndarray, there: np.ndarray) -> bool:
    """Return whether no feature of two sides, (4, n) each, goes together; False where none differs between lines."""
    varies = (np.ptp(here, axis=1) > 0) & (np.ptp(there, axis=1) > 0)
    if here.shape[1] < FEWEST or not varies.any():
        return False
    correlations = [np.corrcoef(x, y)[0, 1] for x, y in zip(here[varies], there[varies], strict=True)]
    return max(correlations) < RELATED
