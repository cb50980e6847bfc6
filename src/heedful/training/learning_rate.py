"""Learning-rate schedules, as factors of `optimizer.lr` for each update."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from heedful.config.schema import OptimizerConfig, Recipe

DECAYING = {"cosine", "linear"}  # schedules that end with the run


@dataclass(frozen=True)
class Clock:
    """Input of a learning-rate schedule: the current update, and facts about the run."""

    step: int  # number of the update, from 1
    warmup: int  # updates
    total: int | float  # updates in the run, perhaps estimated
    d_model: int
    floor: float  # the smallest factor, with which `cosine` and `linear` end

    @property
    def warm(self) -> float:
        """Progress of the warm-up as a factor, from 1 / warmup to 1."""
        return min(1.0, self.step / max(self.warmup, 1))

    @property
    def done(self) -> float:
        """Progress of the run after the warm-up, from 0 to 1."""
        return min(1.0, max(0, self.step - self.warmup) / max(1, self.total - self.warmup))


def noam(clock: Clock) -> float:
    """Compute d_model^-0.5 min(step^-0.5, step warmup^-1.5): formula 3 of Vaswani et al. (2017)."""
    # Adam's variance estimates are poor in the first updates, which the warm-up therefore keeps small.
    return clock.d_model**-0.5 * min(clock.step**-0.5, clock.step * clock.warmup**-1.5)


def inverse_sqrt(clock: Clock) -> float:
    """Warm up linearly to 1, then decay as sqrt(warmup / step)."""
    return min(clock.warm, math.sqrt(max(clock.warmup, 1) / clock.step))


def cosine(clock: Clock) -> float:
    """Warm up linearly to 1, then decay to the floor along a cosine (Loshchilov & Hutter 2017)."""
    return clock.warm * (clock.floor + (1 - clock.floor) * 0.5 * (1 + math.cos(math.pi * clock.done)))


def linear(clock: Clock) -> float:
    """Warm up linearly to 1, then decay linearly to the floor."""
    return clock.warm * (clock.floor + (1 - clock.floor) * (1 - clock.done))


def constant(clock: Clock) -> float:
    """Warm up linearly to 1, then stay constant."""
    return clock.warm


SCHEDULES: dict[str, Callable[[Clock], float]] = {
    "noam": noam,
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}


def learning_rate(config: OptimizerConfig, step: int, total: int | float, d_model: int) -> float:
    """Compute the learning rate of update `step`, counted from 1, in a run of `total` (perhaps estimated) updates."""
    # Schedules return factors of `lr`, so the minimum rate becomes a factor as well.
    clock = Clock(step, config.warmup, total, d_model, config.min_lr / config.lr)
    return config.lr * SCHEDULES[config.schedule](clock)


def rate_line(recipe: Recipe, updates: int | None = None) -> str:
    """Format a line about the learning rate at the end of a run; `updates` is its expected number of updates."""
    train, optimizer = recipe.train, recipe.optimizer
    limits = [f"update {train.max_updates:,}"]
    limits += [f"the end of epoch {train.max_epochs:,}"] if train.max_epochs is not None else []
    if train.max_minutes is not None:
        limits.append("1 minute" if train.max_minutes == 1 else f"{train.max_minutes:g} minutes")
    end = f"whichever comes first of {', '.join(limits)}" if len(limits) > 1 else limits[0]
    last = updates if updates is not None else train.max_updates if len(limits) == 1 else None
    about = f" (about update {updates:,})" if updates is not None and updates < train.max_updates else ""
    line = f"learning rate: {optimizer.schedule} schedule"
    ends_in_warmup = last is not None and last <= optimizer.warmup
    if optimizer.schedule in DECAYING and last is not None and ends_in_warmup:
        rate = learning_rate(optimizer, last, last, recipe.model.d_model)
        line += f", still warming up at the last update: {rate:.3g} of {optimizer.lr:g} at {end}{about}"
    elif optimizer.schedule in DECAYING:
        line += f" from {optimizer.lr:g} to {optimizer.min_lr:g} at {end}{about}"
    elif last is not None:
        rate = learning_rate(optimizer, last, last, recipe.model.d_model)
        when = f"the last update ({train.max_updates:,})" if len(limits) == 1 else f"the end: {end}{about}"
        line += f", {rate:.3g} at {when}"
    else:
        line += f", whose rate does not depend on where the run ends ({end})"
    if ends_in_warmup and optimizer.warmup < train.max_updates:  # otherwise a remark of the recipe says so
        line += f"; the run ends during the warm-up: lower optimizer.warmup, which is {optimizer.warmup:,}"
    return line
