"""The likeliest legal sequence, by comparison with all sequences there are."""

from itertools import pairwise, product

import numpy as np
import pytest

from heedful.predictors.tagger import viterbi


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(11))
def test_no_legal_sequence_is_better(steps, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(steps, 3))
    follows = rng.random((3, 3)) < 0.6
    follows[np.diag_indices(3)] = True  # so that there is a way
    first, last = rng.random(3) < 0.7, np.ones(3, dtype=bool)
    first[seed % 3] = True
    last[(seed + 1) % 3] = seed % 2 == 0
    legal = [
        path
        for path in product(range(3), repeat=steps)
        if first[path[0]] and last[path[-1]] and all(follows[pair] for pair in pairwise(path))
    ]
    best = max(legal, key=lambda path: sum(scores[step, state] for step, state in enumerate(path)))
    assert viterbi(scores, follows, first, last) == [*best]


def test_without_limits_it_is_the_likeliest_state_of_each_step():
    scores = np.random.default_rng(1).normal(size=(13, 5))
    everything = np.ones((5, 5), dtype=bool)
    assert viterbi(scores, everything, everything[0], everything[0]) == scores.argmax(1).tolist()


def test_no_steps_have_no_states():
    everything = np.ones((3, 3), dtype=bool)
    assert viterbi(np.zeros((0, 3)), everything, everything[0], everything[0]) == []
