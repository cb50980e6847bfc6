"""Checkpoint averaging: the final model is the mean of the last checkpoints, unless a single one is clearly better."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import Any

from heedful.checkpoint import Best
from heedful.config.schema import Recipe
from heedful.tasks.task import Scores
from heedful.train.early_stopping import higher_is_better, rank
from heedful.train.logger import shown
from heedful.train.trainer_state import LOSS

Updates = tuple[int, ...]  # the updates of the averaged checkpoints; a single one: the checkpoint itself


@dataclass(frozen=True)
class AverageCandidate:
    """Candidate for the final model: the updates of the averaged checkpoints, and its scores on the validation set.

    `scores` is None without a validation set. `parts` are the scores of each averaged checkpoint, None where the run
    has not computed them.
    """

    updates: Updates
    scores: Scores | None
    parts: Sequence[Scores | None] = ()

    def __str__(self) -> str:
        *others, last = map(str, self.updates)
        return f"the mean of updates {', '.join(others)} and {last}" if others else f"update {last}"

    def chance(self, score: str) -> float:
        """Estimate by how much a checkpoint is better by chance: twice the standard deviation of the parts' scores.

        It is estimated from the differences between neighbours, in which a trend counts little (von Neumann 1941). It
        is 0 where fewer than two scores are known, as for a single checkpoint.
        """
        known = [
            value for part in self.parts if part and score in part and isfinite(value := higher_is_better(part, score))
        ]
        steps = [(after - before) ** 2 for before, after in pairwise(known)]
        return 2 * sqrt(sum(steps) / (2 * len(steps))) if steps else 0.0


def updates_to_average(recipe: Recipe, end: int) -> Updates:
    """Select the updates whose checkpoints are averaged: `average_last` updates, the last update of the run included.

    All but the last are multiples of `save_every`. Early checkpoints would spoil the mean, so that fewer are averaged
    if the second half of the run, or its part after the warm-up, has fewer.
    """
    train = recipe.train
    early = max(end // 2, recipe.optimizer.warmup)
    late = [update for update in range(train.save_every, end, train.save_every) if update > early]
    return (*late[max(0, len(late) + 1 - train.average_last) :], end)


def choose(candidates: Sequence[AverageCandidate], score: str, tie: str | None = LOSS) -> AverageCandidate:
    """Choose a mean, unless a single checkpoint is better by more than chance; without scores a mean, or the earliest.

    Equal scores are decided by the score `tie`, as during training (`early_stopping.rank`).

    The best of many checkpoints is so partly by luck: its score on the validation set is higher than on other data.
    """

    def order(one: AverageCandidate) -> tuple[float, float, int, int]:
        value, loss = rank(one.scores, score, tie) if one.scores else (0.0, 0.0)
        return (
            value + one.chance(score),
            loss + (one.chance(tie) if tie else 0.0),
            len(one.updates),
            -one.updates[-1],
        )

    return max(candidates, key=order)


def choice_line(chosen: AverageCandidate, candidates: Sequence[AverageCandidate], score: str) -> str:
    """Format a line about the final model: the averaged checkpoints, its scores, and the other candidates."""
    line = f"final model: {chosen}"
    if chosen.scores:
        others = [one for one in candidates if one is not chosen]
        compared = "; ".join(f"{one}: {score} {one.scores[score]:.4g}" for one in others if one.scores)
        line += f", {shown(chosen.scores)}" + f" ({compared})" * bool(compared)
        values = [higher_is_better(one.scores, score) for one in others if one.scores]
        if max(values, default=-inf) > higher_is_better(chosen.scores, score):
            line += "; what is better than the mean is so by no more than its checkpoints scatter"
    return line


def lost_line(model: Path, lost: set[int], best: Best | None) -> str:
    """Format a message about lost checkpoints, because of which the final model may be another."""
    names = ", ".join(f"{update}, the best" if best and best.step == update else str(update) for update in sorted(lost))
    return (
        f"{model} is written, but not from all that it should be chosen from: the checkpoints of update {names} are "
        "missing or damaged; take the model as it is, or train again with another --out"
    )


def ending_line(result: dict[str, Any]) -> str:
    """Format a line about a run that has ended already: its last update and its scores."""
    scores = {name: value for name, value in result.items() if name != "update"}
    said = f": {shown(scores)}" if scores else ""
    return f"this run has ended after update {result['update']}{said}; nothing is left to do"
