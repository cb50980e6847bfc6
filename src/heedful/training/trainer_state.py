"""State of a run that is saved as JSON: counters, best score and log sums; and the update with which the run ends."""

from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from math import ceil, inf
from typing import Any, TypeVar

from heedful.config.schema import Recipe, TrainConfig
from heedful.optim import learning_rate
from heedful.tasks.task import Mean

N = TypeVar("N", int, float)
LOSS = "loss"
SCORES = {"best", "best_loss", "lowest_loss", "last"}  # entries that may be None or negative


@dataclass
class LogWindow:
    """Sums of losses, and their counts, since the last record of the training log."""

    losses: list[float] = field(default_factory=list)  # for each term of the loss, in nats
    nlls: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, losses: list[float], nlls: list[float], counts: list[int]) -> None:
        self.losses = added(self.losses, losses)
        self.nlls = added(self.nlls, nlls)
        self.counts = added(self.counts, counts)

    def means(self) -> list[Mean]:
        rows = zip(self.losses, self.nlls, self.counts, strict=True)
        return [Mean.of(*row) for row in rows]


@dataclass
class Watch:
    """What `WarningSigns` has seen of a run so far."""

    small: int = 0  # updates in a row with a small gradient
    same: int = 0  # updates in a row with the loss of the update before
    loss: float | None = None  # of the last update
    validations: list[float | None] = field(default_factory=list)  # losses of the first few validations
    alike: str | None = None  # what the last validation says on a model that predicts one class only


def added(sums: list[N], more: list[N]) -> list[N]:
    return [a + b for a, b in zip(sums, more, strict=True)] if sums else more


@dataclass
class TrainerState:
    """State of a trainer, saved in checkpoints: counters since the start of the run, best score and log window."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # finished batches of this epoch
    tokens: int = 0
    seconds: float = 0.0  # spent on updates; validation and saving are not counted
    skipped: int = 0  # updates left out because their gradient was not finite
    skipped_in_a_row: int = 0
    best: float | None = None
    best_update: int = 0
    best_loss: float | None = None  # of the best update
    lowest_loss: float | None = None  # of all validations
    last: float | None = None  # selecting score of the last validation; None: not finite
    flat: int = 0  # validations in a row with that score
    worse: int = 0  # validations since the score or the loss last improved
    validated: int = 0  # the update of the last validation
    # The update after which each thousandth of train.max_minutes had passed: the learning rate follows it, and a
    # resumed or replayed run repeats it. None: a run of an older version, whose rate knows max_updates only.
    shares: list[int] | None = field(default_factory=list)
    window: LogWindow = field(default_factory=LogWindow)
    watch: Watch = field(default_factory=Watch)
    remarks: list[str] = field(default_factory=list)  # which the run has made, each once however often it is resumed

    @property
    def tie(self) -> str | None:
        """The score that decides among equal selecting scores; None: a run of an older version keeps the earliest."""
        return None if self.shares is None else LOSS

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TrainerState":
        """Restore the state that `to_json` gave; a ValueError says what is not as it was written.

        Older versions validated before they saved.
        """
        try:
            parts = {"window": LogWindow(**values["window"]), "watch": Watch(**values.get("watch", {}))}
            state = cls(**{"validated": values["update"], "shares": None, **values, **parts})
        except (KeyError, TypeError) as error:
            raise ValueError(f"it has other entries than the progress of a run ({error})") from error
        check_progress(state)
        return state


def check_progress(state: TrainerState) -> None:
    """Check the types of a state that was read: checksums do not show what a program wrote wrongly."""
    numbers = {int: (int,), float: (int, float)}
    for name, default in asdict(TrainerState()).items():
        value = getattr(state, name)
        kinds = (int, float, type(None)) if name in SCORES else numbers.get(type(default), (LogWindow, Watch, list))
        if name == "shares":
            kinds = (list, type(None))
        if type(value) not in kinds or (isinstance(value, int) and value < 0 and name not in SCORES):
            raise ValueError(f"{name} is {value!r}")
    shares = state.shares or []
    if any(type(update) is not int for update in shares) or shares != sorted(shares):
        raise ValueError(f"shares is {state.shares!r}")
    if any(type(remark) is not str for remark in state.remarks):
        raise ValueError(f"remarks is {state.remarks!r}")
    check_window(state.window)
    check_watch(state.watch)


def check_window(window: LogWindow) -> None:
    for name, kinds in (("losses", (int, float)), ("nlls", (int, float)), ("counts", (int,))):
        values = getattr(window, name)
        if not isinstance(values, list) or any(type(value) not in kinds for value in values):
            raise ValueError(f"window.{name} is {values!r}")
    if not len(window.losses) == len(window.nlls) == len(window.counts):
        raise ValueError("the lists of its window differ in length")


def check_watch(watch: Watch) -> None:
    losses = isinstance(watch.validations, list) and [watch.loss, *watch.validations]
    if (
        type(watch.small) is not int
        or type(watch.same) is not int
        or type(watch.alike) not in (str, type(None))
        or not losses
        or any(type(loss) not in (int, float, type(None)) for loss in losses)
    ):
        raise ValueError(f"watch is {watch!r}")


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
    """
    number = state.update + 1
    if state.shares is None:
        return train.max_updates
    ends = [inf, inf]

    # By epochs: the updates so far, extrapolated from the part of all epochs that they have read.
    if train.max_epochs is not None:
        per_epoch = ceil(batches / train.accumulate)
        done = state.epoch * per_epoch + ceil(state.batch / train.accumulate)
        ends[0] = number if done >= train.max_epochs * per_epoch else number * train.max_epochs * per_epoch / done

    # By time: from how far the clock was after earlier updates, which the state keeps, since a replay has other times.
    if train.max_minutes is not None and (passed := bisect_right(state.shares, state.update)):
        ends[1] = number * PARTS / passed
    return min(train.max_updates, *ends)


def rate_line(recipe: Recipe, updates: int | None = None) -> str:
    """Format a line about where the learning rate ends; `updates` of the run, if more is known than the recipe says."""
    train, optimizer = recipe.train, recipe.optimizer
    limits = [f"update {train.max_updates:,}"]
    limits += [f"the end of epoch {train.max_epochs:,}"] if train.max_epochs is not None else []
    if train.max_minutes is not None:
        limits.append("1 minute" if train.max_minutes == 1 else f"{train.max_minutes:g} minutes")
    end = f"whichever comes first of {', '.join(limits)}" if len(limits) > 1 else limits[0]
    last = updates if updates is not None else train.max_updates if len(limits) == 1 else None
    about = f" (about update {updates:,})" if updates is not None and updates < train.max_updates else ""
    if optimizer.schedule in DECAYING:
        line = f"learning rate: {optimizer.schedule} from {optimizer.lr:g} to {optimizer.min_lr:g} at {end}{about}"
    elif last is not None:
        rate = learning_rate(optimizer, last, last, recipe.model.d_model)
        line = f"learning rate: {optimizer.schedule}, {rate:.3g} at the end: {end}{about}"
    else:
        line = f"learning rate: {optimizer.schedule}, which does not depend on the end: {end}"
    if last is not None and last <= optimizer.warmup:
        line += f"; the run ends within optimizer.warmup = {optimizer.warmup:,}, lower it"
    return line
