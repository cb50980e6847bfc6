"""How much do the inputs of a layer shift during training? python laboratory/covariate_shift.py [--help]

The task is that of order.py. Ioffe and Szegedy (2015) call the shift internal covariate shift; Santurkar et al. (2018)
doubt that it is what slows training down.
"""

from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import warm_up
from order import TRANSFORMER, VOCABULARY, logits, texts
from report import arguments, check, publish
from torch import Tensor

from heedful.architectures.heads import TextClassifier
from heedful.inspector.capture.recorder import recording

VARIANTS = {
    name: replace(TRANSFORMER, positions="rotary", norm=norm)
    for name, norm in (("pre-norm", "pre"), ("post-norm", "post"), ("no normalisation", "none"))
}
COLOURS = dict(zip(VARIANTS, ("#5a8fc8", "#3a7d44", "#b5651d"), strict=True))
LEARNING_RATES = (3e-4, 1e-3, 3e-3)
UPDATES, WARMUP, ROWS, PROBE_ROWS = 400, 50, 64, 256
LEARNED = 0.95  # accuracy on the probe
WINDOW = 25  # updates of a running mean, in the image


class Run(NamedTuple):
    """One training: the shift of the last layer's input at each update, and the updates until the task is learned."""

    shifts: list[float]
    updates: int


def run(variant: str, learning_rate: float, seed: int, updates: int) -> Run:
    """Train a model, and after each update compare the input of its last layer, on fixed texts, with that before it."""
    torch.manual_seed(seed)
    model = TextClassifier(VARIANTS[variant], VOCABULARY, 2)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    warm_up(optimizer, WARMUP)
    tokens, classes = texts(PROBE_ROWS)
    # With pre-norm, the sublayer reads the normalised state.
    name = f"enc.{TRANSFORMER.encoder_layers - 1}.self.{'norm' if variant == 'pre-norm' else 'in'}"
    shifts: list[float] = []
    learned = updates
    mean, deviation, _ = moments(model, tokens, name)
    for update in range(updates):
        batch, labels = texts(ROWS)
        optimizer.zero_grad()
        F.cross_entropy(logits(model, batch), labels).backward()
        optimizer.step()
        before, scale = mean, deviation
        mean, deviation, outputs = moments(model, tokens, name)
        shifts.append(float(((mean - before).abs() / scale).mean()))
        if learned == updates and float((outputs.argmax(1) == classes).float().mean()) >= LEARNED:
            learned = update + 1
    return Run(shifts, learned)


def moments(model: TextClassifier, tokens: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return mean and standard deviation of each dimension of a recorded tensor over all tokens, and the logits."""
    with torch.no_grad(), recording(model, (name,)) as tensors:
        outputs = logits(model, tokens)
    states = tensors[name].flatten(0, -2)  # (B, T, D) -> (B T, D)
    return states.mean(0), states.std(0), outputs


def main() -> None:
    options = arguments(__doc__, seeds=5)
    updates = 3 if options.quick else UPDATES
    seeds = range(options.seeds)
    runs: dict[tuple[str, float], list[Run]] = {}  # of the seeds, by variant and learning rate
    for variant in VARIANTS:
        for rate in LEARNING_RATES:
            runs[variant, rate] = [run(variant, rate, seed, updates) for seed in seeds]
            means = fmean(fmean(each.shifts) for each in runs[variant, rate])
            print(variant, rate, [each.updates for each in runs[variant, rate]], means, flush=True)

    figure, panels = plt.subplots(1, len(LEARNING_RATES), figsize=(10, 3), sharey=True, layout="constrained")
    for axes, rate in zip(panels, LEARNING_RATES, strict=True):
        for variant, colour in COLOURS.items():
            shifts = torch.tensor([each.shifts for each in runs[variant, rate]]).mean(0)
            smooth = shifts.unfold(0, min(WINDOW, updates), 1).mean(1)
            axes.plot(smooth, color=colour, label=variant)
        axes.set(title=f"learning rate {rate:g}", xlabel="update", yscale="log")
    panels[0].set_ylabel("shift per update / standard deviation")
    panels[0].legend(fontsize="small")

    def shift(variant: str, rate: float) -> list[float]:
        return [fmean(each.shifts) for each in runs[variant, rate]]

    def ratios(one: list[float], other: list[float]) -> list[float]:
        return [a / b for a, b in zip(one, other, strict=True)]

    def fastest(variant: str) -> list[float]:
        """The updates that the learning rate with the smallest mean needs, by seed."""
        return min(([each.updates for each in runs[variant, rate]] for rate in LEARNING_RATES), key=fmean)

    bare, norms = "no normalisation", ("pre-norm", "post-norm")
    predictions = [
        *(check("ratio", ratios(shift(name, 1e-3), shift(bare, 1e-3)), most=0.5, name=name) for name in norms),
        *(check("speed", ratios(fastest(bare), fastest(name)), least=1, name=name) for name in norms),
    ]
    points = [
        {
            "name": name,
            "learning_rate": rate,
            "shift": fmean(shift(name, rate)),
            "updates": [run.updates for run in each],
        }
        for (name, rate), each in runs.items()
    ]
    publish("covariate_shift", predictions, figure, options, points=points)


if __name__ == "__main__":
    main()
