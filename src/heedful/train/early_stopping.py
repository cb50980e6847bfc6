"""Early stopping: the best validation score so far, and how many validations have brought no better one."""

import math

from heedful.errors import InputError
from heedful.evaluate.significance import LOWER_IS_BETTER
from heedful.tasks.task import Scores
from heedful.train.trainer_state import TrainerState


def stops_early(state: TrainerState, patience: int | None) -> bool:
    """True if training ends by early stopping: `patience` validations in a row were not better than the best."""
    return patience is not None and state.worse >= patience


def note_validation(state: TrainerState, scores: Scores | None, name: str) -> None:
    """Update the best score and the count of validations without a better one; NaN is never the best.

    Args:
        state: the state of the trainer, which is changed.
        scores: the scores on the validation set; None without a validation set.
        name: the score that selects the best checkpoint.

    Raises:
        InputError: there is no such score.
    """
    state.validated = state.update
    if scores is None:
        return
    value = higher_is_better(scores, name)
    if value > (-math.inf if state.best is None else state.best):
        state.best, state.best_update, state.worse = value, state.update, 0
    else:
        state.worse += 1


def higher_is_better(scores: Scores, name: str) -> float:
    """Convert a score to a number that is larger for better models: minus the loss, for example; -inf for NaN.

    Raises:
        InputError: there is no such score.
    """
    if name not in scores:
        raise InputError(f'train.best = "{name}": this run has the scores {", ".join(scores)}; choose one of them')
    if not math.isfinite(scores[name]):
        return -math.inf
    return -scores[name] if name in LOWER_IS_BETTER else scores[name]
