"""Viterbi algorithm: the most probable sequence of states under allowed transitions (Viterbi 1967).

N steps, C states.
"""

import numpy as np
from jaxtyping import Bool, Float


def viterbi(
    scores: Float[np.ndarray, "N C"],
    follows: Bool[np.ndarray, "C C"],
    first: Bool[np.ndarray, " C"],
    last: Bool[np.ndarray, " C"],
) -> list[int]:
    """Find the sequence of states with the largest sum of scores among the allowed sequences (Viterbi decoding).

    Args:
        scores: the score of each state at each step, such as log-probabilities.
        follows: True at (i, j) if state j may come after state i.
        first: True for the states that may begin a sequence.
        last: True for the states that may end a sequence.
    """
    if not len(scores):
        return []
    total, came_from = np.where(first, scores[0], -np.inf), []
    for row in scores[1:]:
        ways = np.where(follows, total[:, None], -np.inf)
        came_from.append(ways.argmax(0))
        total = ways.max(0) + row
    path = [int(np.where(last, total, -np.inf).argmax())]
    for before in reversed(came_from):
        path.append(int(before[path[-1]]))
    return path[::-1]
