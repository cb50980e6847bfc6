"""Signs that a model does not learn: a loss that does not change, a gradient of nearly nothing, one class for all."""

import math
from typing import TYPE_CHECKING

from heedful.config.schema import Recipe
from heedful.tasks.task import Scores
from heedful.training.early_stopping import finite
from heedful.training.trainer_state import Watch

if TYPE_CHECKING:
    from heedful.metrics.classes import ClassReport

UPDATES = 10  # in a row that show a sign
VALIDATIONS = 3
SMALL_NORM = 1e-6  # of a gradient
LEARNED = 0.01  # a loss, below which small gradients are a success
SAME = 1e-6  # relative change of the losses of different batches, which differ where anything is learned
STILL = 1e-3  # relative change of the loss on the validation set since the beginning


class WarningSigns:
    """Watches the updates and validations of a run, and reports signs of trouble."""

    def __init__(self, recipe: Recipe, watch: Watch | None = None) -> None:
        self.recipe = recipe
        self.watch = watch or Watch()

    def after_update(self, loss: float, norm: float) -> str | None:
        """Note the mean loss and the gradient norm of an update; return a sentence on a sign, if there is one."""
        watch, unlearned = self.watch, loss > LEARNED
        last = math.nan if watch.loss is None else watch.loss
        watch.small = watch.small + 1 if unlearned and norm < SMALL_NORM else 0
        watch.same = watch.same + 1 if unlearned and abs(loss - last) <= SAME * loss else 0
        watch.loss = finite(loss)
        if watch.small == UPDATES:
            return (
                f"the gradient was below {SMALL_NORM:g} in the last {UPDATES} updates while the loss is {loss:.4g}, so "
                "the weights hardly change: look at train.freeze and for targets that are all alike, or begin another "
                "run with a lower optimizer.lr or a longer optimizer.warmup"
            )
        if watch.same == UPDATES:
            return f"the loss was {loss:.4g} in the last {UPDATES + 1} updates{self.remedy}"
        return None

    def after_validation(self, scores: Scores, classes: "ClassReport | None") -> list[str]:
        """Note the scores of a validation, and its report of classes; return a sentence for each sign."""
        signs, watch = [], self.watch
        before, watch.alike = watch.alike, None
        if classes:
            from heedful.metrics.classes import sameness

            watch.alike = sameness(classes, "the model", "the validation set")
        if before and watch.alike:
            signs.append(watch.alike)
        if len(watch.validations) < VALIDATIONS:
            watch.validations.append(finite(scores.get("loss", math.nan)))
            losses = [loss for loss in watch.validations if loss is not None]
            if len(losses) == VALIDATIONS and LEARNED < max(losses) <= min(losses) * (1 + STILL):
                still = f"the loss on the validation set has been {max(losses):.4g} since the beginning"
                signs.append(f"{still}{self.remedy}")
        return signs

    def at_end(self) -> str | None:
        """Return a sentence on a sign that the last validation alone shows, if there is one."""
        return self.watch.alike

    @property
    def remedy(self) -> str:
        """What to change in a run that learns nothing."""
        return (
            f": nothing is learned. Raise optimizer.lr (now {self.recipe.optimizer.lr:g}) or lower optimizer.warmup "
            f"(now {self.recipe.optimizer.warmup:,}), and check that inputs and targets belong together"
        )
