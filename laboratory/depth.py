"""How deep can a Transformer be, with each kind of connection? python laboratory/depth.py [--help]

The task is that of order.py. Xiong et al. (2020) derive how gradients depend on the place of the normalisation.
"""

import math
from dataclasses import replace
from statistics import fmean

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from models import train, warm_up
from order import TEST_ROWS, TRANSFORMER, VOCABULARY, logits, texts
from report import arguments, check, publish

from heedful.architectures.heads import TextClassifier

DEPTHS = (2, 6, 24, 100)
QUICK_DEPTHS = (1, 1, 2, 3)  # in the places of DEPTHS
LEARNING_RATES = (3e-4, 1e-3, 3e-3)
UPDATES, WARMUP, ROWS = 300, 50, 32
LEARNED = 0.95  # accuracy
GRADIENT_SEEDS, TINY = 10, 1e-30  # gradients cost little, and vary more than accuracies
VARIANTS = {
    "pre-norm": replace(TRANSFORMER, positions="rotary"),
    "post-norm": replace(TRANSFORMER, positions="rotary", norm="post"),
    "no normalisation": replace(TRANSFORMER, positions="rotary", norm="none"),
    "no residual connections": replace(TRANSFORMER, positions="rotary", norm="post", residual=False),
}


def build(variant: str, depth: int, seed: int) -> TextClassifier:
    """Build a classifier with so many layers."""
    torch.manual_seed(seed)
    return TextClassifier(replace(VARIANTS[variant], encoder_layers=depth), VOCABULARY, 2)


def loss_of(model: TextClassifier) -> torch.Tensor:
    """Return the loss of new texts."""
    tokens, classes = texts(ROWS)
    return F.cross_entropy(logits(model, tokens), classes)


def first_gradient(variant: str, depth: int, seed: int) -> float:
    """Return the norm of the loss's gradient with respect to the weights of the first layer, before training."""
    model = build(variant, depth, seed)
    first = list(model.backbone.stack.blocks[0].parameters())
    gradients = torch.autograd.grad(loss_of(model), first)
    return float(torch.cat([gradient.flatten() for gradient in gradients]).norm())


def accuracy(variant: str, depth: int, learning_rate: float, seed: int, updates: int) -> float:
    """Train a model, its learning rate warmed up linearly; return its accuracy on new texts."""
    model = build(variant, depth, seed)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    warm_up(optimizer, WARMUP)
    train(optimizer, lambda: loss_of(model), updates)
    model.eval()
    tokens, classes = texts(TEST_ROWS)
    with torch.no_grad():
        return float((logits(model, tokens).argmax(1) == classes).float().mean())


def main() -> None:
    options = arguments(__doc__, seeds=3)
    updates = 3 if options.quick else UPDATES
    depths: dict[int, int] = dict(zip(DEPTHS, QUICK_DEPTHS if options.quick else DEPTHS, strict=True))
    seeds = range(options.seeds)
    accuracies = {}  # of the seeds, by variant, depth and learning rate
    for depth, layers in depths.items():
        for variant in VARIANTS:
            for rate in LEARNING_RATES:
                accuracies[variant, depth, rate] = [accuracy(variant, layers, rate, seed, updates) for seed in seeds]
                print(variant, depth, rate, accuracies[variant, depth, rate], flush=True)

    figure, panels = plt.subplots(1, len(VARIANTS), figsize=(10, 3), sharey=True, layout="constrained")
    scale = Normalize(0.5, 1)
    for axes, variant in zip(panels, VARIANTS, strict=True):
        means = [[fmean(accuracies[variant, depth, rate]) for rate in LEARNING_RATES] for depth in DEPTHS]
        axes.imshow(means, norm=scale, aspect="auto")
        for row, line in enumerate(means):
            for column, mean in enumerate(line):
                axes.text(column, row, f"{mean:.2f}", ha="center", color="black" if scale(mean) > 0.5 else "white")
        axes.set_xticks(range(len(LEARNING_RATES)), [f"{rate:g}" for rate in LEARNING_RATES])
        axes.set_yticks(range(len(DEPTHS)), list(map(str, DEPTHS)))
        axes.set(title=variant, xlabel="learning rate")
    panels[0].set_ylabel("layers")
    figure.colorbar(ScalarMappable(scale), ax=panels, label="accuracy")

    def ratios(variant: str, depth: int) -> list[float]:
        """log10 of the gradient of the first of many layers, divided by that of the first of 2."""
        pairs = [[first_gradient(variant, depths[n], seed) for n in (depth, 2)] for seed in range(GRADIENT_SEEDS)]
        return [math.log10(max(deep, TINY) / shallow) for deep, shallow in pairs]

    def best(variant: str, depth: int) -> list[float]:
        """The accuracies with the learning rate whose mean is best."""
        return max((accuracies[variant, depth, rate] for rate in LEARNING_RATES), key=fmean)

    def learned(variant: str) -> list[int]:
        """How many combinations of depth and learning rate are learned, by seed."""
        runs = [values for (name, _, _), values in accuracies.items() if name == variant]
        return [sum(value >= LEARNED for value in values) for values in zip(*runs, strict=True)]

    def difference(variant: str) -> list[float]:
        return [pre - other for pre, other in zip(learned("pre-norm"), learned(variant), strict=True)]

    bare = "no residual connections"
    predictions = [
        check("gradient", ratios(bare, 100), most=-2, name=bare, layers=100),
        check("gradient", ratios(bare, 24), most=-2, name=bare, layers=24),
        check("gradient", ratios("pre-norm", 100), least=-1, name="pre-norm", layers=100),
        check("accuracy", best(bare, 24), most=0.6, name=bare, layers=24),
        check("accuracy", best("pre-norm", 24), least=LEARNED, name="pre-norm", layers=24),
        check("accuracy", best("pre-norm", 100), least=LEARNED, name="pre-norm", layers=100),
        check("accuracy", best("post-norm", 100), most=0.6, name="post-norm", layers=100),
        check("learned", difference("post-norm"), least=1, name="post-norm"),
        check("learned", difference("no normalisation"), least=1, name="no normalisation"),
    ]
    publish("depth", predictions, figure, options)


if __name__ == "__main__":
    main()
