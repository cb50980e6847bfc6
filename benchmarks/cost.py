"""Time of a training step by length, width, depth and batch, beside theory: python benchmarks/cost.py [--help]

An encoder-decoder is varied in one direction at a time. Theory is the time of its matrix products at the speed of a
product of 4,096 x 512 x 2,048 on this machine; the rest of a step's time is everything else.
"""

import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import record
import torch
from race import Step
from rich.console import Console
from rich.table import Table
from train_step import VOCAB, batch, heedful

from heedful.config.schema import ModelConfig
from heedful.machine.process import keep_freed_memory
from heedful.machine.speed import matmul_speed
from heedful.tasks.parts.sequence_to_sequence import PairBatch


@dataclass(frozen=True)
class Case:
    """A model and the shape of its batches."""

    width: int = 256
    depth: int = 4  # layers on either side
    length: int = 32  # tokens on either side
    sentences: int = 64

    @property
    def config(self) -> ModelConfig:
        """Settings of the model: the feed-forward network is four times as wide, and heads have 32 dimensions."""
        return ModelConfig(
            d_model=self.width,
            d_ff=4 * self.width,
            heads=self.width // 32,
            encoder_layers=self.depth,
            decoder_layers=self.depth,
        )

    @property
    def flops(self) -> int:
        """FLOPs of the matrix products of a training step, forward and backward, masked scores included."""
        weights = self.depth * (12 + 16) * self.width**2 + self.width * VOCAB
        scores = self.depth * 3 * 2 * self.width * self.length
        return 6 * (weights + scores) * self.sentences * self.length


AXES = {
    "length": [replace(Case(), length=n, sentences=2048 // n) for n in (8, 16, 32, 64, 128, 256, 512)],
    "width": [Case(width=n) for n in (32, 64, 128, 256, 512, 1024)],
    "depth": [Case(depth=n) for n in (1, 2, 4, 8, 12)],
    "sentences": [Case(sentences=n) for n in (1, 4, 16, 64, 256)],
}


def seconds(step: Step, batch: PairBatch, repeats: int) -> float:
    """Measure the median seconds of several training steps, after a warm-up step."""
    step(batch)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step(batch)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(case: Case, repeats: int) -> float:
    lengths = np.full((case.sentences, 2), case.length)
    sentences = batch(np.random.default_rng(1), lengths, record.CPU)
    return seconds(heedful(case.config, record.CPU, "bfloat16"), sentences, repeats)


def draw(costs: dict[str, list[float]], limit: float, path: Path) -> None:
    """Draw a panel per direction, with logarithmic axes: microseconds per token, measured and in theory."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(AXES), figsize=(14, 3.6), sharey=True, layout="constrained")
    for panel, (axis, cases) in zip(panels, AXES.items(), strict=True):
        values = [getattr(case, axis) for case in cases]
        tokens = [2 * case.sentences * case.length for case in cases]
        theory = [1e6 * case.flops / limit / count for case, count in zip(cases, tokens, strict=True)]
        measured = [1e6 * cost / count for cost, count in zip(costs[axis], tokens, strict=True)]
        panel.loglog(values, measured, "o-", color="#0072B2", label="measured")
        panel.loglog(values, theory, "--", color="#D55E00", label="matrix products at the limit")
        panel.set_xlabel(axis)
        panel.set_xticks(values, labels=map(str, values))
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("microseconds a token")
    panels[0].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("docs/cost.svg"), help="where to draw")
    options = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    limit = matmul_speed(4096, 512, 2048, torch.bfloat16, record.CPU)
    costs = {axis: [measure(case, options.repeats) for case in cases] for axis, cases in AXES.items()}
    shown = Table("varied", "value", "ms a step", "tokens/s", "of the limit")
    for axis, cases in AXES.items():
        for case, cost in zip(cases, costs[axis], strict=True):
            tokens = 2 * case.sentences * case.length
            figures = (f"{cost * 1e3:,.0f}", f"{tokens / cost:,.0f}", f"{case.flops / cost / limit:.0%}")
            shown.add_row(axis, str(getattr(case, axis)), *figures)
    facts = record.machine(options.threads) | {"limit": limit}
    Console(width=110).print(facts, shown)
    draw(costs, limit, options.out)
    record.append(__file__, facts | {"seconds": costs})


if __name__ == "__main__":
    main()
