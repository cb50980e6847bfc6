"""Which deep Transformers train? python laboratory/depth.py [--help]

Residual connections (He et al. 2016) and norms, before each sublayer or after its residual connection (Xiong et al.
2020), at several depths and learning rates. The task is that of order.py, which two layers learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from order import ROWS, TEST_ROWS, TRANSFORMER, VOCABULARY, texts
from report import arguments, check, publish
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from heedful.architectures.heads import TextClassifier

DEPTHS, RATES = (2, 6, 24, 100), (3e-4, 1e-3, 3e-3, 1e-2)
UPDATES, WARMUP = 300, 50
LEARNED = 0.95  # accuracy; chance is 0.5
BASE = replace(TRANSFORMER, positions="rotary")
MODELS = {
    "pre-norm": replace(BASE, norm="pre"),
    "post-norm": replace(BASE, norm="post"),
    "no norm": replace(BASE, norm="none"),
    "no residual": replace(BASE, norm="post", residual=False),
}


def classifier(name: str, layers: int, seed: int) -> TextClassifier:
    torch.manual_seed(seed)
    return TextClassifier(replace(MODELS[name], encoder_layers=layers), VOCABULARY, 2)


def logits(model: TextClassifier, tokens: Tensor) -> Tensor:
    return model(tokens, torch.ones_like(tokens, dtype=torch.bool))


def first_gradient(name: str, layers: int, seed: int) -> float:
    """Return the norm of the gradient of the first layer's parameters before training."""
    model = classifier(name, layers, seed)
    tokens, classes = texts(TEST_ROWS)
    F.cross_entropy(logits(model, tokens), classes).backward()
    gradients = [parameter.grad for parameter in model.backbone.stack.blocks[0].parameters()]
    return float(torch.stack([gradient.norm() for gradient in gradients if gradient is not None]).norm())


def accuracy(name: str, layers: int, rate: float, seed: int, updates: int) -> float:
    """Train a model, and return its accuracy on new texts; 0.5 if its loss is no longer a finite number."""
    model = classifier(name, layers, seed)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    schedule = LambdaLR(optimizer, lambda update: min(1.0, (update + 1) / WARMUP))
    for _ in range(updates):
        tokens, classes = texts(ROWS)
        loss = F.cross_entropy(logits(model, tokens), classes)
        if not loss.isfinite():
            return 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    tokens, classes = texts(TEST_ROWS)
    with torch.no_grad():
        return float((logits(model, tokens).argmax(1) == classes).float().mean())


def draw(accuracies: Mapping[tuple[str, int, float], Sequence[float]]) -> Figure:
    """Draw the mean accuracies of each kind of model over depth and learning rate."""
    figure, panels = plt.subplots(1, len(MODELS), figsize=(11, 3), sharey=True, layout="constrained")
    scale = Normalize(0.5, 1.0)
    for axes, name in zip(panels, MODELS, strict=True):
        means = [[fmean(accuracies[name, depth, rate]) for rate in RATES] for depth in DEPTHS]
        axes.imshow(means, norm=scale, cmap="Blues", aspect="auto", origin="lower")
        for row, values in enumerate(means):
            for column, value in enumerate(values):
                colour = "white" if value > 0.8 else "black"
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize="small")
        axes.set(title=name, xlabel="learning rate", xticks=range(len(RATES)), yticks=range(len(DEPTHS)))
        axes.set_xticklabels([f"{rate:g}" for rate in RATES])
        axes.set_yticklabels(map(str, DEPTHS))
    panels[0].set_ylabel("layers")
    figure.colorbar(ScalarMappable(scale, "Blues"), ax=panels, label="accuracy")
    return figure


def main() -> None:
    options = arguments(__doc__, seeds=3)
    updates = 2 if options.quick else UPDATES
    seeds = range(options.seeds)
    accuracies: dict[tuple[str, int, float], list[float]] = {}
    for name in MODELS:
        for depth in DEPTHS:
            layers = 1 if options.quick else depth
            for rate in RATES:
                accuracies[name, depth, rate] = [accuracy(name, layers, rate, seed, updates) for seed in seeds]

    def best(name: str, depth: int) -> list[float]:
        """Return the accuracies at the learning rate that suits this depth best."""
        return max((accuracies[name, depth, rate] for rate in RATES), key=fmean)

    def learned(name: str) -> list[float]:
        """Return the number of combinations of depth and learning rate that each seed learns."""
        combinations = [accuracies[name, depth, rate] for depth in DEPTHS for rate in RATES]
        return [float(sum(one[seed] >= LEARNED for one in combinations)) for seed in seeds]

    def growth(name: str) -> list[float]:
        """Return the gradient of the first of 100 layers relative to that of the first of two."""
        deep = 3 if options.quick else max(DEPTHS)
        return [first_gradient(name, deep, seed) / first_gradient(name, min(DEPTHS), seed) for seed in seeds]

    def more(name: str) -> list[float]:
        return [pre - other for pre, other in zip(learned("pre-norm"), learned(name), strict=True)]

    predictions = [
        check("gradient", growth("no residual"), most=0.01, name="no residual"),
        check("gradient", growth("pre-norm"), least=0.1, name="pre-norm"),
        check("accuracy", best("no residual", 24), most=0.6, name="no residual", depth=24),
        check("accuracy", best("pre-norm", 100), least=LEARNED, name="pre-norm", depth=100),
        check("accuracy", best("post-norm", 100), most=0.6, name="post-norm", depth=100),
        check("more", more("post-norm"), least=1, name="post-norm"),
        check("more", more("no norm"), least=1, name="no norm"),
    ]
    publish("depth", predictions, draw(accuracies), options)


if __name__ == "__main__":
    main()
