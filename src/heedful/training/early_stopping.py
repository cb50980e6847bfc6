"""Which validation is the best: by the selecting score, ties by the loss; early stopping when neither improves."""

import math

from heedful.checkpoint import Best
from heedful.errors import InputError
from heedful.metrics.metric import lower_is_better
from heedful.tasks.task import Scores
from heedful.training.trainer_state import LOSS, TrainerState

FLAT = 3  # validations in a row with one and the same selecting score, after which it says nothing


def stops_early(state: TrainerState, patience: int | None) -> bool:
    """True if training ends by early stopping: in `patience` validations in a row neither score nor loss improved."""
    return patience is not None and state.worse >= patience


def note_validation(state: TrainerState, scores: Scores | None, name: str) -> None:
    """Update the best score and the count of validations without progress; NaN is never the best."""
    state.validated = state.update
    if scores is None:
        return
    value, loss = rank(scores, name, state.tie)
    state.flat = state.flat + 1 if value == state.last else 1
    state.last = finite(value)
    learns = loss > _rank_of_loss(state.lowest_loss)
    if learns:
        state.lowest_loss = -loss
    better = (value, loss) > (-math.inf if state.best is None else state.best, _rank_of_loss(state.best_loss))
    if better:
        state.best, state.best_update = finite(value), state.update
        state.best_loss = finite(-loss)
    state.worse = 0 if better or learns else state.worse + 1


def best_of(state: TrainerState, name: str) -> Best | None:
    """The best update so far; by its loss while the selecting score is NaN. None before the first finite score."""
    if state.best is not None:
        return Best(state.best_update, name, state.best)
    return None if state.best_loss is None else Best(state.best_update, LOSS, -state.best_loss)


def finite(value: int | float) -> float | None:
    """Return a number; None for NaN and infinities, which strict JSON cannot hold."""
    return value if math.isfinite(value) else None


def rank(scores: Scores, name: str, tie: str | None = LOSS) -> tuple[float, float]:
    """Rank of a model, larger for better ones: by the selecting score, and among equal ones by the score `tie`."""
    return higher_is_better(scores, name), higher_is_better(scores, tie) if tie in scores else -math.inf


def silence_line(state: TrainerState, scores: Scores, name: str) -> str | None:
    """Format a line if the selecting score does not distinguish the checkpoints, so that the loss selects alone."""
    value = scores[name]
    if not math.isfinite(value):
        reason = f"{name} is not a number in this validation"
    elif name != LOSS and state.flat >= FLAT:
        reason = f"{name} was {value:.4g} in the last {FLAT} validations"
    else:
        return None
    return (
        f'{reason}: it says nothing about which checkpoint is better, so the loss decides; or set train.best = "loss"'
    )


def higher_is_better(scores: Scores, name: str) -> float:
    """Convert a score to a number that is larger for better models: minus the loss, for example; -inf for NaN."""
    if name not in scores:
        raise InputError(f'train.best = "{name}": this run has the scores {", ".join(scores)}; choose one of them')
    if not math.isfinite(scores[name]):
        return -math.inf
    return -scores[name] if lower_is_better(name) else scores[name]


def _rank_of_loss(loss: int | float | None) -> float:
    return -math.inf if loss is None else -loss
