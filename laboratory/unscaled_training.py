"""Training with and without the division of scores by sqrt(d_k): python laboratory/unscaled_training.py [--help]

The task is that of order.py; the setting is `model.scale_scores`.
"""

from dataclasses import replace
from statistics import fmean

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import BLUE, BROWN, train
from order import TEST_ROWS, TRANSFORMER, VOCABULARY, logits, texts
from report import arguments, check, publish
from torch import Tensor

from heedful.architectures.heads import TextClassifier

SIZES = (32, 128, 512)  # d_k, of the only head
LEARNING_RATES = (3e-4, 1e-3)
ROWS, STEP, STEPS = 32, 25, 12  # texts in an update; the model is tested after each STEP updates
LEARNED = 0.95  # accuracy


def learning(size: int, scaled: bool, rate: float, seed: int, steps: int) -> dict[str, float]:
    """Train until the task is learned; return the updates needed, at most all of them, and the final accuracy."""
    torch.manual_seed(seed)
    config = replace(TRANSFORMER, d_model=size, d_ff=2 * size, heads=1, positions="rotary", scale_scores=scaled)
    model = TextClassifier(config, VOCABULARY, 2)
    optimizer = torch.optim.Adam(model.parameters(), rate)

    def loss() -> Tensor:
        tokens, classes = texts(ROWS)
        return F.cross_entropy(logits(model, tokens), classes)

    accuracy, step = 0.0, 0
    while step < steps and accuracy < LEARNED:
        train(optimizer, loss, STEP)
        tokens, classes = texts(TEST_ROWS)
        with torch.no_grad():
            accuracy = float((logits(model.eval(), tokens).argmax(1) == classes).float().mean())
        model.train()
        step += 1
    return {"updates": step * STEP, "accuracy": accuracy}


def main() -> None:
    options = arguments(__doc__, seeds=5)
    steps = 1 if options.quick else STEPS
    runs = {
        (size, scaled, rate): [learning(size, scaled, rate, seed, steps) for seed in range(options.seeds)]
        for size in SIZES
        for scaled in (True, False)
        for rate in LEARNING_RATES
    }

    figure, panels = plt.subplots(1, len(LEARNING_RATES), figsize=(8, 3), sharey=True, layout="constrained")
    for axes, rate in zip(panels, LEARNING_RATES, strict=True):
        for scaled, name, colour in ((True, "divided by √d_k", BLUE), (False, "not divided", BROWN)):
            means = [fmean(run["updates"] for run in runs[size, scaled, rate]) for size in SIZES]
            axes.plot(SIZES, means, marker="o", label=name, color=colour, linestyle="-" if scaled else "--")
        axes.set(title=f"learning rate {rate:g}", xlabel="d_k", xscale="log", xticks=SIZES, xticklabels=SIZES)
        axes.minorticks_off()
    panels[0].set_ylabel(f"updates to an accuracy of {LEARNED}\n(at most {STEP * STEPS})")
    panels[0].legend(fontsize="small")

    def ratios(size: int, rate: float) -> list[float]:
        """The updates needed without the division, divided by those with it."""
        pairs = zip(runs[size, False, rate], runs[size, True, rate], strict=True)
        return [off["updates"] / on["updates"] for off, on in pairs]

    def accuracies(scaled: bool, rate: float) -> list[float]:
        return [run["accuracy"] for run in runs[SIZES[-1], scaled, rate]]

    predictions = [
        check("ratio", ratios(32, 3e-4), most=1.5, size=32),
        check("ratio", ratios(512, 3e-4), least=2, size=512),
        check("accuracy", accuracies(True, 1e-3), least=LEARNED, name="divided by √d_k"),
        check("accuracy", accuracies(False, 1e-3), most=0.6, name="not divided"),
    ]
    publish("unscaled_training", predictions, figure, options)


if __name__ == "__main__":
    main()
