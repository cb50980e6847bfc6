"""Curves of a training: loss and validation score against updates, minutes and FLOPs, from the log of the run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heedful.train.log_file import LOG, TIMINGS, records

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """Curves of one run by the name of the logged value, such as "loss" and "valid_bleu", against updates.

    Attributes:
        values: for each name pairs of update and value.
        seconds: pairs of update and training time in seconds until then; empty for a run that did not take the time.
        flops_per_update: FLOPs of one update; None if unknown.
        tokens_per_second: training speed of the whole run; None if unknown.
    """

    values: dict[str, Points]
    seconds: Points
    flops_per_update: float | None
    tokens_per_second: float | None

    def against(self, axis: str, name: str) -> Points:
        """Return a curve against "updates", "minutes" or "FLOPs"; empty if the run does not have it."""
        points = self.values.get(name, [])
        if axis == "updates":
            return points
        if axis == "FLOPs":
            per_update = self.flops_per_update
            return [(x * per_update, y) for x, y in points] if per_update else []
        if not self.seconds or not points:
            return []
        updates, clock = zip((0.0, 0.0), *self.seconds, strict=True)
        minutes = np.interp([x for x, _ in points], updates, clock) / 60
        return [(float(x), y) for x, (_, y) in zip(minutes, points, strict=True)]


def read_curves(folder: Path, flops_per_update: float | None) -> Curves:
    """Read the curves of a run from its log; without a log there are none."""
    values: dict[str, Points] = {}
    for record in records(folder / LOG):
        for name, value in record.items():
            if name != "update" and value is not None:
                values.setdefault(name, []).append((record["update"], value))
    timings = [record for record in records(folder / TIMINGS) if record.get("seconds") is not None]
    seconds = [(record["update"], record["seconds"]) for record in timings]
    return Curves(values, seconds, flops_per_update, mean_speed(timings))


def mean_speed(timings: list[dict[str, Any]]) -> float | None:
    """Return the training speed in tokens per second: the mean over the records, weighted by their time."""
    clock = [0.0, *(record["seconds"] for record in timings)]
    spans = np.diff(clock)
    if not timings or spans.sum() <= 0:
        return None
    return float(np.average([record["tokens_per_second"] for record in timings], weights=spans))
