"""Time of a step against length, at a fixed number of tokens: python laboratory/parallelism.py [--help]

A recurrent layer reads a row token by token: fewer and longer rows leave it less to compute in parallel.
"""

import math
import time

import matplotlib.pyplot as plt
import torch
from models import COLOURS, MODELS, classifier
from report import arguments, check, publish

from heedful.nn.masks import AttentionMask

WIDTH, TOKENS, LENGTHS = 128, 4096, (8, 32, 128, 512, 2048)


def step_seconds(name: str, length: int, tokens: int) -> float:
    """Return the seconds of the best of three forward and backward passes over rows of a length."""
    stack = classifier(name, WIDTH, 5, 2).backbone.stack
    x = torch.randn(tokens // length, length, WIDTH, requires_grad=True)
    mask = AttentionMask(torch.ones(len(x), length, dtype=torch.bool), length, causal=True)
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        stack(x, mask).sum().backward()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds


def main() -> None:
    options = arguments(__doc__, seeds=5)
    lengths, tokens = ((8, 16), 32) if options.quick else (LENGTHS, TOKENS)
    rounds = [{name: [step_seconds(name, n, tokens) for n in lengths] for name in MODELS} for _ in range(options.seeds)]

    figure, axes = plt.subplots(figsize=(7, 4))
    for name in MODELS:
        means = torch.tensor([seconds[name] for seconds in rounds]).mean(0)
        axes.loglog(lengths, tokens / means, marker="o", label=name, color=COLOURS[name])
    axes.set(xlabel=f"length, at {tokens:,} tokens a step", ylabel="tokens/s, forward and backward")
    axes.minorticks_off()
    axes.set_xticks(lengths, map(str, lengths))
    axes.legend(fontsize="small")

    def slowdown(name: str, index: int) -> list[float]:
        return [seconds[name][index] / seconds[name][0] for seconds in rounds]

    middle = len(lengths) // 2
    predictions = [
        *[check("long", slowdown(name, -1), least=2, name=name) for name in ("RNN", "LSTM", "GRU")],
        check("middle", slowdown("Transformer", middle), most=1.5, name="Transformer"),
        *[check("long", slowdown(name, -1), most=2, name=name) for name in ("CNN, 8 layers", "Transformer")],
    ]
    publish("parallelism", predictions, figure, options)


if __name__ == "__main__":
    main()
