"""Gradient of a prediction with respect to a token, against its distance: python laboratory/gradients.py [--help]

Bengio et al. (1994) showed that in a recurrent network it shrinks, or grows, by a factor at each step.
"""

import math

import findings
import matplotlib.pyplot as plt
import torch
from findings import Check
from opponents import COLOURS, OPPONENTS, classifier
from torch import nn

from heedful.nn.masks import AttentionMask

WIDTH, LENGTH, ROWS, VOCABULARY = 64, 200, 16, 50
FAR = 150  # tokens back


def draw_as_torch_does(model: nn.Module) -> None:
    """Draw the recurrent weights anew, uniformly in 1 / sqrt(units), as torch does."""
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.reset_parameters()


def norms(name: str, seed: int, length: int) -> list[float]:
    """The norm of the gradient at each distance from the last token, relative to that of the last token."""
    torch.manual_seed(seed)
    model = classifier(name.removesuffix(", torch's weights"), WIDTH, VOCABULARY, 2)
    if name.endswith("weights"):
        draw_as_torch_does(model)
    embedded = torch.randn(ROWS, length, WIDTH, requires_grad=True)
    mask = AttentionMask(torch.ones(ROWS, length, dtype=torch.bool), length, causal=True)
    states = model.backbone.stack(embedded, mask)
    (gradient,) = torch.autograd.grad((states[:, -1] * torch.randn(ROWS, WIDTH)).sum(), embedded)
    found = gradient.norm(dim=-1).mean(0).flip(0)
    return (found / found[0]).clamp(min=1e-30).log10().tolist()


def main() -> None:
    options = findings.arguments(__doc__, seeds=5)
    length, far = (20, 15) if options.quick else (LENGTH, FAR)
    names = [*OPPONENTS, "RNN, torch's weights"]
    curves = {name: [norms(name, seed, length) for seed in range(options.seeds)] for name in names}
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, found in curves.items():
        mean = torch.tensor(found).mean(0).clamp(min=-12)
        axes.plot(mean, label=name, color=COLOURS.get(name, "#d9a066"), linestyle="-" if name in COLOURS else "--")
    axes.set(xlabel="distance from the last token", ylabel="log10 of the gradient's norm, relative")
    axes.legend(fontsize="small")
    at = {name: [curve[far] for curve in found] for name, found in curves.items()}
    bounds = {"RNN, torch's weights": (-math.inf, -3), "RNN": (-math.inf, -3)}
    bounds |= dict.fromkeys(("GRU", "LSTM", "Transformer"), (-3, math.inf))
    checks = [Check("ratio", at[name], *limits, {"name": name}) for name, limits in bounds.items()]
    findings.publish("gradients", checks, figure, options)


if __name__ == "__main__":
    main()
