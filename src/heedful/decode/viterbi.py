"""The likeliest sequence of states in which each may follow the one before it (Viterbi 1967).

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
    """The states with the largest sum of scores among the sequences that are allowed.

    Args:
        scores: of each state at each step, such as logarithms of probabilities.
        follows: whether state j may come after state i, at (i, j).
        first: whether a sequence may begin with a state.
        last: whether it may end with a state.
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
