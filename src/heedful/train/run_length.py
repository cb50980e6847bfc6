"""Length of a run: the update with which it ends by the limit that comes first, and where its learning rate ends."""

from bisect import bisect_right
from math import ceil, inf

from heedful.config.schema import Recipe, TrainConfig
from heedful.optim import learning_rate
from heedful.train.trainer_state import TrainerState

PARTS = 1000  # of train.max_minutes, in which the learning rate falls
DECAYING = {"cosine", "linear"}  # schedules that reach their end where the run ends


def note_time(state: TrainerState, train: TrainConfig) -> None:
    """Record in the state after which update each thousandth of `train.max_minutes` has passed."""
    if train.max_minutes is not None and state.shares is not None:
        passed = min(PARTS, int(PARTS * state.seconds / (60 * train.max_minutes)))
        state.shares += [state.update] * (passed - len(state.shares))


def last_update(train: TrainConfig, state: TrainerState, batches: int) -> int | float:
    """Estimate the last update of a run from the share of each limit that its next update completes.

    A schedule over this number ends with the run, whichever limit ends it; the rate is a function of the state alone.

    Args:
        train: the limits.
        state: the state once the batches of the next update are read.
        batches: the number of batches of this epoch.
    """
    number = state.update + 1
    if state.shares is None:
        return train.max_updates
    ends = [inf, inf]
    if train.max_epochs is not None:
        per_epoch = ceil(batches / train.accumulate)
        done = state.epoch * per_epoch + ceil(state.batch / train.accumulate)
        ends[0] = number if done >= train.max_epochs * per_epoch else number * train.max_epochs * per_epoch / done
    if train.max_minutes is not None and (passed := bisect_right(state.shares, state.update)):
        ends[1] = number * PARTS / passed
    return min(train.max_updates, *ends)


def rate_line(recipe: Recipe, updates: int | None = None) -> str:
    """Format a line about where the learning rate ends.

    Args:
        recipe: the recipe of the run.
        updates: the number of updates of the run; None: known only as far as the recipe gives it.
    """
    train, optimizer = recipe.train, recipe.optimizer
    limits = [f"update {train.max_updates:,}"]
    limits += [f"the end of epoch {train.max_epochs:,}"] if train.max_epochs is not None else []
    if train.max_minutes is not None:
        limits.append("1 minute" if train.max_minutes == 1 else f"{train.max_minutes:g} minutes")
    end = f"whichever comes first of {', '.join(limits)}" if len(limits) > 1 else limits[0]
    known = updates if updates is not None else train.max_updates if len(limits) == 1 else None
    about = f" (about update {updates:,})" if updates is not None and updates < train.max_updates else ""
    if optimizer.schedule in DECAYING:
        line = f"learning rate: {optimizer.schedule} from {optimizer.lr:g} to {optimizer.min_lr:g} at {end}{about}"
    elif known is not None:
        rate = learning_rate(optimizer, known, known, recipe.model.d_model)
        line = f"learning rate: {optimizer.schedule}, {rate:.3g} at the end: {end}{about}"
    else:
        line = f"learning rate: {optimizer.schedule}, which does not depend on the end: {end}"
    if known is not None and known <= optimizer.warmup:
        line += f"; the run ends within optimizer.warmup = {optimizer.warmup:,}, lower it"
    return line
