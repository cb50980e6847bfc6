"""Time of a step against length at a fixed number of tokens: python laboratory/parallelism.py [--help]

A recurrent layer reads one token after another, so that fewer and longer rows leave less to compute at once.
"""

import math
import time

import findings
import matplotlib.pyplot as plt
import torch
from findings import Check
from opponents import COLOURS, OPPONENTS, classifier

from heedful.nn.masks import AttentionMask

WIDTH, TOKENS, LENGTHS = 128, 4096, (8, 32, 128, 512, 2048)


def seconds(name: str, length: int, tokens: int) -> float:
    """Seconds of the best of three forward and backward passes over rows of a length."""
    stack = classifier(name, WIDTH, 5, 2).backbone.stack
    x = torch.randn(tokens // length, length, WIDTH, requires_grad=True)
    mask = AttentionMask(torch.ones(len(x), length, dtype=torch.bool), length, causal=True)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        stack(x, mask).sum().backward()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    options = findings.arguments(__doc__, seeds=5)
    lengths, tokens = ((8, 16), 32) if options.quick else (LENGTHS, TOKENS)
    rounds = [{name: [seconds(name, n, tokens) for n in lengths] for name in OPPONENTS} for _ in range(options.seeds)]
    figure, axes = plt.subplots(figsize=(7, 4))
    for name in OPPONENTS:
        means = torch.tensor([found[name] for found in rounds]).mean(0)
        axes.loglog(lengths, tokens / means, marker="o", label=name, color=COLOURS[name])
    axes.set(xlabel=f"length, at {tokens:,} tokens a step", ylabel="tokens/s, forward and backward")
    axes.minorticks_off()
    axes.set_xticks(lengths, map(str, lengths))
    axes.legend(fontsize="small")

    def slower(name: str, place: int) -> list[float]:
        return [found[name][place] / found[name][0] for found in rounds]

    middle = len(lengths) // 2
    checks = [
        *[Check("slower", slower(name, -1), least=2, case={"name": name}) for name in ("RNN", "LSTM", "GRU")],
        Check("middle", slower("Transformer", middle), most=1.5, case={"name": "Transformer"}),
        *[Check("slower", slower(name, -1), most=2, case={"name": name}) for name in ("CNN, 8 layers", "Transformer")],
    ]
    findings.publish("parallelism", checks, figure, options)


if __name__ == "__main__":
    main()
