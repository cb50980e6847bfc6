"""State of a run, saved as JSON (counters, best score and log sums), and an estimate of the run's last update."""

from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from math import ceil, inf
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from heedful.config.schema import TrainConfig
from heedful.tasks.task import Mean
from heedful.training.loss_scale import LossScale

LOSS = "loss"

# Types are checked when a state is read, because a checksum cannot show that a program wrote a wrong value.
Counter = Annotated[StrictInt, Field(ge=0)]
Number = StrictInt | StrictFloat  # an integer stays an integer, so that a state is written as it was read


@dataclass
class LogWindow:
    """Sums of each term of the loss, in nats, and their counts, since the last record of the training log."""

    losses: list[Number] = field(default_factory=list)
    nlls: list[Number] = field(default_factory=list)
    counts: list[StrictInt] = field(default_factory=list)

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    def add(self, losses: list[float], nlls: list[float], counts: list[int]) -> None:
        if not self.counts:
            self.losses, self.nlls, self.counts = losses, nlls, counts
            return
        self.losses = [a + b for a, b in zip(self.losses, losses, strict=True)]
        self.nlls = [a + b for a, b in zip(self.nlls, nlls, strict=True)]
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]

    def means(self) -> list[Mean]:
        return [Mean.of(*row) for row in zip(self.losses, self.nlls, self.counts, strict=True)]


@dataclass
class Watch:
    """State of `WarningSigns`, which a resumed run restores."""

    small: StrictInt = 0  # updates in a row with a small gradient
    same: StrictInt = 0  # updates in a row with the same loss as the previous update
    loss: Number | None = None  # of the last update
    validations: list[Number | None] = field(default_factory=list)  # losses of the first few validations
    alike: StrictStr | None = None  # a sentence, if the model predicted only one class in the last validation

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")


@dataclass
class TrainerState:
    """State of a trainer, saved in checkpoints: counters since the start of the run, best score and log window."""

    update: Counter = 0
    epoch: Counter = 0
    batch: Counter = 0  # finished batches of this epoch
    tokens: Counter = 0
    seconds: Number = 0.0  # spent on updates; validation and saving are not counted
    skipped: Counter = 0  # updates whose gradient was not finite, so that no weight changed
    skipped_in_a_row: Counter = 0
    best: Number | None = None
    best_update: Counter = 0
    best_loss: Number | None = None  # of the best update
    lowest_loss: Number | None = None  # of all validations
    last: Number | None = None  # selection score of the last validation; None: not finite, or no validation yet
    flat: Counter = 0  # validations in a row with that score
    worse: Counter = 0  # validations since the score or the loss last improved
    validated: Counter = 0  # the update of the last validation
    # The update after which each thousandth of train.max_minutes had passed. The learning rate depends on these, and a
    # resumed or replayed run reuses them. None: a run of an older version, whose rate depends only on max_updates.
    shares: list[StrictInt] | None = field(default_factory=list)
    loss_scale: LossScale | None = None  # of the next update in float16
    window: LogWindow = field(default_factory=LogWindow)
    watch: Watch = field(default_factory=Watch)
    remarks: list[StrictStr] = field(default_factory=list)  # printed once, however often the run is resumed

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    @property
    def tie(self) -> str | None:
        """Name of the score that breaks ties; None: a run of an older version keeps the earliest checkpoint."""
        return None if self.shares is None else LOSS

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TrainerState":
        """Restore a state from the values of `to_json`; a ValueError names the first invalid one."""
        if not {"update", "window"} <= values.keys():
            raise ValueError("its entries are not those of a run's progress (update or window is missing)")
        # Older versions validated before they saved, and had no shares.
        values = {"validated": values["update"], "shares": None, **values}
        try:
            state = TypeAdapter(cls).validate_python(values)
        except ValidationError as errors:
            problem = errors.errors()[0]
            name = problem["loc"][0]
            if problem["type"] == "unexpected_keyword_argument":
                path = ".".join(map(str, problem["loc"]))
                raise ValueError(f"its entries are not those of a run's progress ({path})") from errors
            raise ValueError(f"{name} is {values[str(name)]!r}") from errors
        if state.shares is not None and state.shares != sorted(state.shares):
            raise ValueError(f"shares is {state.shares!r}")
        if not len(state.window.losses) == len(state.window.nlls) == len(state.window.counts):
            raise ValueError("the lists of its window differ in length")
        return state


SHARES = 1000  # equal parts of train.max_minutes, after each of which the end of the schedule is estimated again


def note_time(state: TrainerState, train: TrainConfig) -> None:
    """Record in the state after which update each thousandth of `train.max_minutes` has passed."""
    if train.max_minutes is not None and state.shares is not None:
        passed = min(SHARES, int(SHARES * state.seconds / (60 * train.max_minutes)))
        state.shares += [state.update] * (passed - len(state.shares))


def last_update(train: TrainConfig, state: TrainerState, batches: int) -> int | float:
    """Estimate the last update of a run from the share of each limit that is used up after the next update.

    A schedule over this many updates ends with the run, whichever limit ends it, and depends only on the state.
    """
    number = state.update + 1
    if state.shares is None:
        return train.max_updates
    ends = [inf, inf]

    # By epochs: the updates so far, extrapolated from the share of all epochs that they have read.
    if train.max_epochs is not None:
        per_epoch = ceil(batches / train.accumulate)
        done = state.epoch * per_epoch + ceil(state.batch / train.accumulate)
        ends[0] = number if done >= train.max_epochs * per_epoch else number * train.max_epochs * per_epoch / done

    # By time: from the times of earlier updates in the state, not from the clock, since a replay's speed differs.
    if train.max_minutes is not None and (passed := bisect_right(state.shares, state.update)):
        ends[1] = number * SHARES / passed
    return min(train.max_updates, *ends)
