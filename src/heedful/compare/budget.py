"""Budget of a comparison: updates, minutes and parameters that every system gets."""

from bisect import bisect
from dataclasses import dataclass, replace

from heedful.config.keys import KEYS
from heedful.config.rules import impossible
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.models.parameters import count_without_building
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.train.trainer_state import DECAYING

TOLERANCE = 0.05  # share by which the parameters of a system may differ from the budget
WIDEST = 4096  # d_model is searched below, first in steps
STEP = 8


@dataclass(frozen=True)
class Budget:
    """Equal budget of all systems; None for whatever each recipe decides by itself.

    Attributes:
        updates: updates of the training, in place of `train.max_updates`.
        minutes: minutes of training, validation not counted, in place of `train.max_minutes`.
        parameters: number of parameters that every system must have, up to the share `TOLERANCE`.
    """

    updates: int | None = None
    minutes: float | None = None
    parameters: int | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """Settings of a recipe that give its training this budget, as "key=value"."""
        limits = ((KEYS.train.max_updates, self.updates), (KEYS.train.max_minutes, self.minutes))
        return tuple(f"{key}={value}" for key, value in limits if value is not None)

    def allows(self, size: int) -> bool:
        """True if a number of parameters is that of the budget, up to `TOLERANCE`."""
        return self.parameters is None or abs(size - self.parameters) <= TOLERANCE * self.parameters

    def check_size(self, recipe: Recipe, tokenizers: TokenizerPair) -> int:
        """Return the number of parameters of a recipe's model, after checking that it is the budget's.

        Raises:
            InputError: the number differs by more than `TOLERANCE`; the message proposes another width.
        """
        size = model_size(recipe, tokenizers)
        if self.parameters is None or self.allows(size):
            return size
        share = f"{abs(size / self.parameters - 1):.1%} {'more' if size > self.parameters else 'fewer'}"
        width, nearest = nearest_width(recipe, tokenizers, self.parameters)
        raise InputError(
            f"the model has {size:,} parameters, {share} than --parameters {self.parameters:,}, where at most "
            f"{TOLERANCE:.0%} are allowed; change its sizes: model.d_model = {width} alone would make it {nearest:,}"
        )

    def remarks(self, recipe: Recipe, updates: int | None, seconds: float | None, size: int) -> list[str]:
        """Say in sentences where a trained system differs from this budget, and why.

        Args:
            recipe: the recipe of the system.
            updates: updates of its training; None if unknown.
            seconds: time of its training; None if unknown.
            size: number of its parameters.
        """
        remarks = [] if self.allows(size) else [f"has {size:,} of --parameters {self.parameters:,}"]
        timely = self.minutes is None or (seconds is not None and seconds >= 60 * self.minutes)
        enough = self.updates is None or updates == self.updates
        if not enough and not (self.minutes and timely):
            remarks.append(f"has {updates or 'an unknown number of'} updates of --updates {self.updates}")
        if not timely and not (self.updates and enough):
            spent = "an unknown time" if seconds is None else f"{seconds / 60:.1f} minutes"
            remarks.append(f"has trained for {spent} of --minutes {self.minutes:g}: its recipe ends it earlier")
        schedule, limit = recipe.optimizer.schedule, recipe.train.max_updates
        ends_earlier = recipe.train.max_epochs is not None or recipe.train.max_minutes is not None
        if schedule in DECAYING and not ends_earlier and updates is not None and updates < limit:
            remarks.append(
                f'its learning rate (schedule "{schedule}") was to fall until update {limit:,}, not {updates:,}'
            )
        return remarks


def model_size(recipe: Recipe, tokenizers: TokenizerPair) -> int:
    """Count the parameters of the model that a recipe builds for a vocabulary, without memory for its weights."""
    return count_without_building(lambda: find_task(recipe.task).build(recipe, tokenizers)).total


def nearest_width(recipe: Recipe, tokenizers: TokenizerPair, wanted: int) -> tuple[int, int]:
    """Find the `model.d_model` that brings a model nearest to a number of parameters, all other keys unchanged.

    Returns:
        The width, and the number of parameters of a model that wide.
    """
    coarse = with_widths(recipe, range(STEP, WIDEST, STEP))
    above = bisect(coarse, wanted, key=lambda candidate: model_size(candidate, tokenizers))
    between = [1, *(one.model.d_model for one in coarse), WIDEST][above : above + 2]
    fine = with_widths(recipe, range(between[0], between[1] + 1))
    sizes = {one.model.d_model: model_size(one, tokenizers) for one in fine}
    width = min(sizes, key=lambda width: abs(sizes[width] - wanted))
    return width, sizes[width]


def with_widths(recipe: Recipe, widths: range) -> list[Recipe]:
    """Return a recipe with each of several widths, without those that cannot work."""
    wider = (replace(recipe, model=replace(recipe.model, d_model=width)) for width in widths)
    return [candidate for candidate in wider if not impossible(candidate)]
