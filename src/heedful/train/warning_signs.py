"""Signs that a model does not learn: a loss that does not change, a gradient of nearly nothing, one class for all."""

import math

from heedful.config.schema import Recipe
from heedful.evaluate.class_report import ClassReport, sameness
from heedful.tasks.task import Scores

UPDATES = 10  # in a row that show a sign
VALIDATIONS = 3
SMALL_NORM = 1e-6  # of a gradient
LEARNED = 0.01  # a loss, below which small gradients are a success
SAME = 1e-6  # relative change of the losses of different batches, which differ where anything is learned
STILL = 1e-3  # relative change of the loss on the validation set since the beginning


class WarningSigns:
    """Watches the updates and validations of a run since it was begun or resumed, and reports signs of trouble.

    Args:
        recipe: The recipe of the run, whose settings the remedies name.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.small = self.same = 0  # updates in a row with a small gradient, and with the loss of the update before
        self.last = math.nan
        self.validations: list[float] = []  # their losses
        self.classes: list[str | None] = []  # what each validation says on a model that predicts one class only

    def after_update(self, loss: float, norm: float) -> str | None:
        """Note the mean loss and the gradient norm of an update; return a sentence on a sign, if there is one.

        Args:
            loss: The mean loss in nats.
            norm: The norm of the gradient before clipping.
        """
        unlearned = loss > LEARNED
        self.small = self.small + 1 if unlearned and norm < SMALL_NORM else 0
        self.same = self.same + 1 if unlearned and abs(loss - self.last) <= SAME * loss else 0
        self.last = loss
        if self.small == UPDATES:
            return (
                f"the gradient was below {SMALL_NORM:g} in the last {UPDATES} updates while the loss is {loss:.4g}, so "
                "the weights hardly change: look at train.freeze and for targets that are all alike, or begin another "
                "run with a lower optimizer.lr or a longer optimizer.warmup"
            )
        if self.same == UPDATES:
            return f"the loss was {loss:.4g} in the last {UPDATES + 1} updates{self.remedy}"
        return None

    def after_validation(self, scores: Scores, classes: ClassReport | None) -> list[str]:
        """Note the scores of a validation, and its report of classes; return a sentence for each sign."""
        signs = []
        self.validations.append(scores.get("loss", math.nan))
        self.classes.append(classes and sameness(classes, "the model", "the validation set"))
        if len(self.classes) > 1 and self.classes[-1] and self.classes[-2]:
            signs.append(self.classes[-1])
        low, high = min(self.validations), max(self.validations)
        if len(self.validations) == VALIDATIONS and LEARNED < high <= low * (1 + STILL):
            signs.append(f"the loss on the validation set has been {high:.4g} since the beginning{self.remedy}")
        return signs

    def at_end(self) -> str | None:
        """Return a sentence on a sign that the last validation alone shows, if there is one."""
        return self.classes[-1] if self.classes else None

    @property
    def remedy(self) -> str:
        """What to change in a run that learns nothing."""
        return (
            f": nothing is learned. Raise optimizer.lr (now {self.recipe.optimizer.lr:g}) or lower optimizer.warmup "
            f"(now {self.recipe.optimizer.warmup:,}), and check that inputs and targets belong together"
        )
