"""Improvement during a run: which validation is the best, when to stop early, and signs that the model is not learning.

The best validation is the one with the best selection score, which `train.best` names; ties are broken by the loss.
"""

import math
from typing import TYPE_CHECKING

from heedful.checkpoint import Best
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.metrics.metric import lower_is_better
from heedful.tasks.task import Scores
from heedful.training.logger import finite_or_none
from heedful.training.trainer_state import LOSS, TrainerState, Watch

if TYPE_CHECKING:
    from heedful.metrics.classes import ClassReport

FLAT = 3  # validations in a row with the same selection score, after which a warning says that only the loss decides
UPDATES = 10  # updates in a row with a sign of trouble, after which the sign is reported
VALIDATIONS = 3  # validations at the start of a run, after which an unchanged loss is reported
SMALL_NORM = 1e-6  # gradients with a smaller norm count as small
LEARNED = 0.01  # below this loss, small gradients are a sign of success
SAME = 1e-6  # losses of successive updates whose relative difference is no larger count as equal
STILL = 1e-3  # validation losses whose relative difference is no larger count as unchanged


def record_validation(state: TrainerState, scores: Scores | None, name: str) -> None:
    """Record a validation in the state: a new best value of the score `name`, and validations without progress."""
    state.validated = state.update
    if scores is None:
        return
    # Both numbers are larger for better models: `loss` is minus the loss.
    value, loss = rank(scores, name, state.tie)
    state.flat = state.flat + 1 if value == state.last else 1
    state.last = finite_or_none(value)

    # A loss that is still falling is also progress: a score may stay at its first value for many validations.
    learns = loss > (-math.inf if state.lowest_loss is None else -state.lowest_loss)
    if learns:
        state.lowest_loss = -loss

    best = -math.inf if state.best is None else state.best
    improves = (value, loss) > (best, -math.inf if state.best_loss is None else -state.best_loss)
    if improves:
        state.best, state.best_update = finite_or_none(value), state.update
        state.best_loss = finite_or_none(-loss)
    state.worse = 0 if improves or learns else state.worse + 1


def best_of(state: TrainerState, name: str) -> Best | None:
    """Return the best update so far, judged by its loss if the score `name` has never been finite.

    Returns None if the loss has never been finite either.
    """
    if state.best is not None:
        return Best(state.best_update, name, state.best)
    # The value of a `Best` is larger for better checkpoints: minus the loss.
    return None if state.best_loss is None else Best(state.best_update, LOSS, -state.best_loss)


def rank(scores: Scores, name: str, tie: str | None = LOSS) -> tuple[float, float]:
    """Return a sort key that is larger for better models: the score `name` comes first, and `tie` breaks ties."""
    return higher_is_better(scores, name), higher_is_better(scores, tie) if tie in scores else -math.inf


def higher_is_better(scores: Scores, name: str) -> float:
    """Convert a score to a number that is larger for better models, such as minus the loss; NaN becomes -inf."""
    if name not in scores:
        raise InputError(f'train.best = "{name}": this run has the scores {", ".join(scores)}; choose one of them')
    if not math.isfinite(scores[name]):
        return -math.inf
    return -scores[name] if lower_is_better(name) else scores[name]


def flat_score_warning(state: TrainerState, scores: Scores, name: str) -> str | None:
    """Format a warning if the selection score does not distinguish the checkpoints, so that only the loss decides."""
    value = scores[name]
    if not math.isfinite(value):
        reason = f"{name} is not finite in this validation"
    elif name != LOSS and state.flat >= FLAT:
        reason = f"{name} has been {value:.4g} in the last {FLAT} validations"
    else:
        return None
    return (
        f"{reason}: it does not show which checkpoint is better, so the loss decides; to always choose by the loss, "
        'set train.best = "loss"'
    )


class WarningSigns:
    """Monitor that watches the updates and validations of a run, and reports signs of trouble.

    It keeps its observations in `watch`, a part of the run's state.
    """

    def __init__(self, recipe: Recipe, watch: Watch | None = None) -> None:
        self.watch = watch or Watch()
        self.remedy = (
            f": the model is not learning. Raise optimizer.lr (now {recipe.optimizer.lr:g}) or lower optimizer.warmup "
            f"(now {recipe.optimizer.warmup:,}), and check that inputs and targets match"
        )

    def after_update(self, loss: float, norm: float) -> str | None:
        """Record the mean loss (nats) and the gradient norm of an update; return a warning if they are suspicious."""
        watch, unlearned = self.watch, loss > LEARNED
        # Comparisons with NaN are False, so the first update counts as different.
        last = math.nan if watch.loss is None else watch.loss
        watch.small = watch.small + 1 if unlearned and norm < SMALL_NORM else 0
        watch.same = watch.same + 1 if unlearned and abs(loss - last) <= SAME * loss else 0
        watch.loss = finite_or_none(loss)
        # `==` and not `>=`, so that a longer series is reported only once.
        if watch.small == UPDATES:
            return (
                f"the gradient norm has been below {SMALL_NORM:g} in the last {UPDATES} updates, but the loss is "
                f"{loss:.4g}, so the weights hardly change: check train.freeze, and whether all targets are the same, "
                "or start another run with a lower optimizer.lr or a longer optimizer.warmup"
            )
        if watch.same == UPDATES:
            return f"the loss has been {loss:.4g} in the last {UPDATES + 1} updates{self.remedy}"
        return None

    def after_validation(self, scores: Scores, classes: "ClassReport | None") -> list[str]:
        """Record the scores of a validation, and its class report; return a warning for each sign of trouble."""
        warnings, watch = [], self.watch
        before, watch.alike = watch.alike, None
        if classes:
            from heedful.metrics.classes import single_class_warning

            watch.alike = single_class_warning(classes, "the model", "the validation set")
        # Predicting one class is normal early in training, so it is reported only after two validations in a row, or by
        # `Trainer.finish` after the last one.
        if before and watch.alike:
            warnings.append(watch.alike)
        if len(watch.validations) < VALIDATIONS:
            watch.validations.append(finite_or_none(scores.get("loss", math.nan)))
            losses = [loss for loss in watch.validations if loss is not None]
            if len(losses) == VALIDATIONS and LEARNED < max(losses) <= min(losses) * (1 + STILL):
                warnings.append(
                    f"the loss on the validation set has been {max(losses):.4g} since the beginning{self.remedy}"
                )
        return warnings
