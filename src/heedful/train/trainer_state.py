"""Where a run is: the part of a checkpoint that is neither weights nor moments. All of it is JSON."""

from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from heedful.tasks.task import Mean

N = TypeVar("N", int, float)


@dataclass
class LogWindow:
    """Sums since the last line of the log."""

    losses: list[float] = field(default_factory=list)  # of each term of the loss, in nats
    nlls: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, losses: list[float], nlls: list[float], counts: list[int]) -> None:
        """Add the sums of one update."""
        self.losses = added(self.losses, losses)
        self.nlls = added(self.nlls, nlls)
        self.counts = added(self.counts, counts)

    def means(self) -> list[Mean]:
        """The mean of each term; none if nothing was added."""
        rows = zip(self.losses, self.nlls, self.counts, strict=True)
        return [Mean(loss / max(count, 1), nll / max(count, 1)) for loss, nll, count in rows]


def added(sums: list[N], more: list[N]) -> list[N]:
    """Element by element; `sums` may be empty, for nothing yet."""
    return [a + b for a, b in zip(sums, more, strict=True)] if sums else more


@dataclass
class TrainerState:
    """Counters of a run. Updates are counted from the start of the run; a resumed run goes on counting."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    tokens: int = 0
    skipped: int = 0  # updates left out because their gradient was not finite
    skipped_in_a_row: int = 0
    best: float | None = None
    best_update: int = 0
    worse: int = 0  # validations since the best
    validated: int = 0  # the update of the last validation
    window: LogWindow = field(default_factory=LogWindow)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; floats come back bit for bit."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TrainerState":
        """What `to_json` gave; older versions validated before they saved."""
        return cls(**{"validated": values["update"], **values, "window": LogWindow(**values["window"])})
