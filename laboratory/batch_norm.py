"""Batch normalisation in a Transformer's blocks: python laboratory/batch_norm.py [--help]

The task is that of order.py. Layer normalisation (Ba et al. 2016) uses no statistics of the batch.
"""

from dataclasses import replace
from statistics import fmean

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import BLUE, BROWN, train
from order import TEST_ROWS, TRANSFORMER, VOCABULARY, logits, texts
from report import arguments, check, publish
from torch import Tensor, nn

from heedful.architectures.heads import TextClassifier

SIZES = (2, 4, 8, 32, 128)  # texts in a batch
LEARNING_RATE, STEP, STEPS = 1e-3, 50, 20  # the model is tested after each STEP updates
LEARNED = 0.95  # accuracy
COLOURS = {"layer": BLUE, "batch": BROWN}


class BatchNorm(nn.Module):
    """Batch normalisation (Ioffe & Szegedy 2015) over all tokens of a batch without padding."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.flatten(0, -2)).view_as(x)


def build(kind: str, seed: int) -> TextClassifier:
    """Build a pre-norm Transformer with layer or batch normalisation."""
    torch.manual_seed(seed)
    model = TextClassifier(replace(TRANSFORMER, positions="rotary"), VOCABULARY, 2)
    if kind == "batch":
        norms = [name for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)]
        for name in norms:
            parent, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(parent), attribute, BatchNorm(TRANSFORMER.d_model))
    return model


@torch.no_grad()
def accuracy(model: TextClassifier, rows: int) -> float:
    """Return the accuracy on new texts, in batches of `rows`: they matter while the model is in training mode."""
    tokens, classes = texts(TEST_ROWS // rows * rows)
    outputs = torch.cat([logits(model, batch) for batch in tokens.split(rows)])
    return float((outputs.argmax(1) == classes).float().mean())


@torch.no_grad()
def dependence(model: TextClassifier, rows: int) -> float:
    """Return the mean absolute change of a text's logits when the other texts of its batch are replaced."""
    changes = []
    for _ in range(20):
        tokens, others = texts(rows)[0], texts(rows)[0]
        others[0] = tokens[0]
        changes.append(float((logits(model, tokens)[0] - logits(model, others)[0]).abs().mean()))
    return fmean(changes)


def measure(kind: str, rows: int, seed: int, steps: int) -> dict[str, float]:
    """Train a model with batches of `rows` texts, and measure how it learns and what its outputs depend on."""
    model = build(kind, seed)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)

    def loss() -> Tensor:
        tokens, classes = texts(rows)
        return F.cross_entropy(logits(model, tokens), classes)

    needed, running = 0, 0.0
    for step in range(1, steps + 1):
        train(optimizer, loss, STEP)
        running = accuracy(model.eval(), TEST_ROWS)
        model.train()
        needed = needed or (step * STEP if running >= LEARNED else 0)
    # In training mode, a forward pass changes the running statistics, so they are measured before.
    return {
        "updates": needed or steps * STEP,
        "running": running,
        "accuracy": accuracy(model, rows),
        "change": dependence(model, rows),
    }


def main() -> None:
    options = arguments(__doc__, seeds=5)
    steps = 1 if options.quick else STEPS
    runs = {
        (kind, rows): [measure(kind, rows, seed, steps) for seed in range(options.seeds)]
        for rows in SIZES
        for kind in COLOURS
    }

    def values(quantity: str, kind: str, rows: int) -> list[float]:
        return [run[quantity] for run in runs[kind, rows]]

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    for kind, colour in COLOURS.items():
        name = f"{kind} normalisation"
        left.plot(SIZES, [fmean(values("accuracy", kind, rows)) for rows in SIZES], label=name, color=colour)
        right.plot(SIZES, [fmean(values("updates", kind, rows)) for rows in SIZES], label=name, color=colour)
    running = [fmean(values("running", "batch", rows)) for rows in SIZES]
    left.plot(SIZES, running, label="batch normalisation, running statistics", color=BROWN, linestyle=":")
    left.set(xlabel="texts in a batch", ylabel="accuracy", xscale="log", ylim=(0.5, 1.02))
    right.set(xlabel="texts in a batch", ylabel=f"updates to an accuracy of {LEARNED}", xscale="log")
    left.legend(fontsize="small")
    figure.tight_layout()

    slower = [
        batch / layer for batch, layer in zip(values("updates", "batch", 2), values("updates", "layer", 2), strict=True)
    ]
    predictions = [
        *(check("change", values("change", "layer", rows), most=1e-4, name="layer", rows=rows) for rows in (2, 128)),
        *(check("change", values("change", "batch", rows), least=0.05, name="batch", rows=rows) for rows in (2, 128)),
        check("accuracy", values("accuracy", "layer", 2), least=LEARNED, name="layer"),
        check("accuracy", values("accuracy", "batch", 2), most=0.9, name="batch"),
        check("running", values("running", "batch", 2), most=0.9),
        check("slower", slower, least=1.5),
    ]
    points = [
        {"name": kind, "rows": rows, **{key: fmean(values(key, kind, rows)) for key in each[0]}}
        for (kind, rows), each in runs.items()
    ]
    publish("batch_norm", predictions, figure, options, points=points)


if __name__ == "__main__":
    main()
