"""Groups of test sentences of similar length, or whose words move similarly far, and the scores of each group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.compare.statistics import TextSample
from heedful.config.schema import Recipe
from heedful.evaluate import Resampled
from heedful.inspector.development import gold_alignment

MOST = 5  # groups
FEWEST = 20  # sentences of a group


@dataclass(frozen=True)
class Group:
    """Sentences of a test set with similar values of a property, and the score of each system on them.

    Attributes:
        low: the smallest value of the property.
        high: the largest value.
        count: number of sentences.
        scores: the score on the group with its 95 % interval, by system.
    """

    low: int
    high: int
    count: int
    scores: dict[str, Resampled]


def group_scores(values: Sequence[int], samples: Mapping[str, TextSample], score: str) -> list[Group]:
    """Divide a test set into groups of about equal size by a property of its sentences, and score each group.

    Args:
        values: the property of each sentence, such as its length.
        samples: the results of each system, by its name.
        score: the name of the score.

    Returns:
        Groups in the order of the property; none if there are too few sentences for two groups.
    """
    groups = []
    for chosen in divided(values):
        found = {name: sample.part(chosen).intervals()[score] for name, sample in samples.items()}
        inside = [values[i] for i in chosen]
        groups.append(Group(min(inside), max(inside), len(chosen), found))
    return groups


def divided(values: Sequence[int]) -> list[list[int]]:
    """Divide sentences by a property into at most `MOST` groups; sentences with equal values stay together.

    A group of fewer than `FEWEST` sentences is joined to the one before it, the first to the one after it.
    """
    count = min(MOST, len(values) // FEWEST)
    if count < 2:
        return []
    bounds = np.unique(np.quantile(values, np.arange(1, count) / count, method="higher"))
    places = np.searchsorted(bounds, values, side="right")
    groups: list[list[int]] = []
    for place in range(len(bounds) + 1):
        group = np.flatnonzero(places == place).tolist()
        if groups and min(len(group), len(groups[-1])) < FEWEST:
            groups[-1] += group
        else:
            groups.append(group)
    return groups if len(groups) > 1 else []


def largest_moves(recipe: Recipe) -> list[int] | None:
    """Return for each test sentence how far the word order moves: the largest |i - j| of aligned words i and j.

    The gold alignment of the words stands beside the text in a corpus of `heedful scenes`; None for other data.
    """
    test = recipe.data.test
    if test is None:
        return None
    tested = replace(recipe, data=replace(recipe.data, valid=test))
    moves = [max((abs(i - j) for i, j in pair.links), default=0) for pair in gold_alignment(tested, most=1 << 30)]
    return moves or None
