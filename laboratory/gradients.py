"""Gradient of the last state with respect to a token, against its distance: python laboratory/gradients.py [--help]

Bengio et al. (1994) showed that in a recurrent network it shrinks, or grows, by a factor at each step.
"""

import matplotlib.pyplot as plt
import torch
from models import COLOURS, MODELS, classifier
from report import arguments, check, publish
from torch import nn

from heedful.nn.masks import AttentionMask

WIDTH, LENGTH, ROWS, VOCABULARY = 64, 200, 16, 50
DISTANCE = 150  # tokens back, in the predictions
DEFAULT_RNN = "RNN, torch's weights"


def initialise_as_torch(model: nn.Module) -> None:
    """Draw the recurrent weights uniformly in +-1 / sqrt(units), as torch does; heedful's are orthogonal."""
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.reset_parameters()


def gradient_norms(name: str, seed: int, length: int) -> list[float]:
    """Return log10 of the gradient's norm at each distance from the last token, relative to that of the last token."""
    torch.manual_seed(seed)
    model = classifier("RNN" if name == DEFAULT_RNN else name, WIDTH, VOCABULARY, 2)
    if name == DEFAULT_RNN:
        initialise_as_torch(model)
    embeddings = torch.randn(ROWS, length, WIDTH, requires_grad=True)
    mask = AttentionMask(torch.ones(ROWS, length, dtype=torch.bool), length, causal=True)
    states = model.backbone.stack(embeddings, mask)
    (gradient,) = torch.autograd.grad((states[:, -1] * torch.randn(ROWS, WIDTH)).sum(), embeddings)
    norms = gradient.norm(dim=-1).mean(0).flip(0)
    return (norms / norms[0]).clamp(min=1e-30).log10().tolist()


def main() -> None:
    options = arguments(__doc__, seeds=5)
    length, distance = (20, 15) if options.quick else (LENGTH, DISTANCE)
    names = [*MODELS, DEFAULT_RNN]
    curves = {name: [gradient_norms(name, seed, length) for seed in range(options.seeds)] for name in names}

    figure, axes = plt.subplots(figsize=(7, 4))
    for name, seeds in curves.items():
        mean = torch.tensor(seeds).mean(0).clamp(min=-12)
        axes.plot(mean, label=name, color=COLOURS.get(name, "#d9a066"), linestyle="-" if name in COLOURS else "--")
    axes.set(xlabel="distance from the last token", ylabel="log10 of the gradient's norm, relative")
    axes.legend(fontsize="small")

    far = {name: [curve[distance] for curve in seeds] for name, seeds in curves.items()}
    predictions = [check("ratio", far[name], most=-3, name=name) for name in (DEFAULT_RNN, "RNN")]
    predictions += [check("ratio", far[name], least=-3, name=name) for name in ("GRU", "LSTM", "Transformer")]
    publish("gradients", predictions, figure, options)


if __name__ == "__main__":
    main()
