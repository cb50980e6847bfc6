"""Attention scores with and without the division by sqrt(d_k): python laboratory/scaled_scores.py [--help]

Vaswani et al. (2017, section 3.2.1) suspect that large dot products push the softmax to where its gradient is small.
"""

import math

import matplotlib.pyplot as plt
import torch
from models import BLUE, BROWN
from report import arguments, check, publish

SIZES = [2**power for power in range(11)]  # d_k
QUERIES, KEYS = 500, 32
LARGE = 512  # d_k in the predictions
NAMES = {True: "divided by √d_k", False: "not divided"}


def statistics(size: int, scaled: bool, queries: int) -> dict[str, float]:
    """Return means over random queries, each with its own random keys: variance, entropy and gradient of attention.

    Entropy is a share of that of uniform weights; the gradient is the Frobenius norm of the softmax's Jacobian.
    """
    q, k = torch.randn(queries, 1, size), torch.randn(queries, KEYS, size)
    scores = (q * k).sum(-1) * (size**-0.5 if scaled else 1.0)
    weights = scores.softmax(-1)
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]
    return {
        "variance": float(scores.var()),
        "entropy": float(torch.special.entr(weights).sum(-1).mean()) / math.log(KEYS),
        "gradient": float(jacobian.flatten(1).norm(dim=1).mean()),
    }


def main() -> None:
    options = arguments(__doc__, seeds=5)
    queries = 20 if options.quick else QUERIES
    measured: dict[tuple[bool, int], list[dict[str, float]]] = {}
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        for scaled in NAMES:
            for size in SIZES:
                measured.setdefault((scaled, size), []).append(statistics(size, scaled, queries))

    def values(quantity: str, scaled: bool, size: int = LARGE) -> list[float]:
        return [one[quantity] for one in measured[scaled, size]]

    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2))
    labels = {"variance": "variance of the scores", "entropy": "entropy / ln 32", "gradient": "gradient of the softmax"}
    for axes, (quantity, label) in zip(panels, labels.items(), strict=True):
        for scaled, name in NAMES.items():
            means = [sum(values(quantity, scaled, size)) / options.seeds for size in SIZES]
            axes.plot(SIZES, means, label=name, color=BLUE if scaled else BROWN, linestyle="-" if scaled else "--")
        axes.set(xlabel="d_k", ylabel=label, xscale="log", yscale="log" if quantity == "variance" else "linear")
    panels[0].legend(fontsize="small")
    figure.tight_layout()

    ratios = [off / on for off, on in zip(values("gradient", False), values("gradient", True), strict=True)]
    predictions = [
        check(
            "variance", [value / LARGE for value in values("variance", False)], least=0.9, most=1.1, name=NAMES[False]
        ),
        check("variance_scaled", values("variance", True), least=0.9, most=1.1),
        check("entropy", values("entropy", False), most=0.2, name=NAMES[False]),
        check("entropy", values("entropy", True), least=0.8, name=NAMES[True]),
        check("gradient", ratios, most=0.5),
    ]
    publish("scaled_scores", predictions, figure, options)


if __name__ == "__main__":
    main()
