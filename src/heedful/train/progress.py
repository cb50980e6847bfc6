"""Where a run is: the part of a checkpoint that is neither weights nor moments. All of it is JSON."""

from dataclasses import asdict, dataclass, field
from typing import Any

from heedful.losses import perplexity


@dataclass
class Window:
    """Sums since the last line of the log."""

    loss: float = 0.0  # nats
    nll: float = 0.0
    count: int = 0  # target tokens

    def add(self, loss: float, nll: float, count: int) -> None:
        """Add the sums of one update."""
        self.loss += loss
        self.nll += nll
        self.count += count

    def means(self) -> dict[str, float]:
        """Loss in nats a target token, and perplexity."""
        count = max(self.count, 1)
        return {"loss": self.loss / count, "perplexity": perplexity(self.nll / count)}


@dataclass
class Progress:
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
    window: Window = field(default_factory=Window)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; floats come back bit for bit."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Progress":
        """What `to_json` gave."""
        return cls(**{**values, "window": Window(**values["window"])})
