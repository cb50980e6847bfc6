"""Choosing the final model: the mean of the last checkpoints, unless a single one is better on the validation set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.checkpoint import Best
from heedful.config.schema import Recipe
from heedful.tasks.task import Scores, merit
from heedful.train.logger import shown

Updates = tuple[int, ...]  # of the checkpoints whose mean a model is; one: the checkpoint itself


@dataclass(frozen=True)
class AverageCandidate:
    """Weights that may become the final model, with their scores on the validation set; None where there is none."""

    updates: Updates
    scores: Scores | None

    def __str__(self) -> str:
        *others, last = map(str, self.updates)
        return f"the mean of updates {', '.join(others)} and {last}" if others else f"update {last}"


def updates_to_average(recipe: Recipe, end: int) -> Updates:
    """The updates whose checkpoints are averaged: `average_last` of them, the last update of the run included.

    The others are multiples of `save_every`. Early ones would spoil the mean: there are fewer where the second half of
    the run, or what of it comes after the warm-up, has fewer.
    """
    train = recipe.train
    early = max(end // 2, recipe.optimizer.warmup)
    late = [update for update in range(train.save_every, end, train.save_every) if update > early]
    return (*late[max(0, len(late) + 1 - train.average_last) :], end)


def choose(candidates: Sequence[AverageCandidate], score: str) -> AverageCandidate:
    """The candidate with the best score; of equal ones, as without a validation set, a mean, or else the earliest."""

    def rank(one: AverageCandidate) -> tuple[float, int, int]:
        return (merit(one.scores, score) if one.scores else 0.0), len(one.updates), -one.updates[-1]

    return max(candidates, key=rank)


def choice_line(chosen: AverageCandidate, candidates: Sequence[AverageCandidate], score: str) -> str:
    """One line that says what the final model is, its scores, and what it was compared with."""
    line = f"final model: {chosen}"
    if chosen.scores:
        others = [one for one in candidates if one is not chosen]
        compared = "; ".join(f"{one}: {score} {one.scores[score]:.4g}" for one in others if one.scores)
        line += f", {shown(chosen.scores)}" + f" ({compared})" * bool(compared)
    return line


def lost_line(model: Path, lost: set[int], best: Best | None) -> str:
    """A message that the final model may not be the one that the run should have given."""
    names = ", ".join(f"{update}, the best" if best and best.step == update else str(update) for update in sorted(lost))
    return (
        f"{model} is written, but not from all that it should be chosen from: the checkpoints of update {names} are "
        "missing or damaged; take the model as it is, or train again with another --out"
    )


def ending_line(result: dict[str, Any]) -> str:
    """One line about a run that has ended before."""
    scores = {name: value for name, value in result.items() if name != "update"}
    said = f": {shown(scores)}" if scores else ""
    return f"this run has ended after update {result['update']}{said}; nothing is left to do"
