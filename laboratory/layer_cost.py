"""Time and memory of a layer against length and width: python laboratory/layer_cost.py [--help]

An exponent is the slope of log time, or log memory, over log length or log width.
"""

import math
import time

import matplotlib.pyplot as plt
import torch
from models import COLOURS, classifier
from report import arguments, check, publish
from torch.autograd.graph import saved_tensors_hooks

from heedful.nn.masks import AttentionMask

EXPONENTS = {"LSTM": (1, 2), "CNN, 2 layers": (1, 2), "Transformer": (2, 1)}  # of N and of d in the table
LENGTHS, WIDTH = (512, 1024, 2048, 4096), 64
WIDTHS, LENGTH = (256, 512, 1024), 64
SHORT_LENGTH, LARGE_WIDTH = 32, 512  # where N < d, and a recurrent layer has fewer operations


def time_and_memory(name: str, length: int, width: int, rows: int = 1) -> tuple[float, float]:
    """Return the seconds of the best of three forward and backward passes, and the bytes that autograd saves."""
    stack = classifier(name, width, 5, 2).backbone.stack
    x = torch.randn(rows, length, width, requires_grad=True)
    mask = AttentionMask(torch.ones(rows, length, dtype=torch.bool), length, causal=True)
    storages: dict[int, int] = {}  # bytes by address: tensors may share a storage

    def save(tensor: torch.Tensor) -> torch.Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(save, lambda tensor: tensor):
        stack(x, mask).sum().backward()
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        stack(x, mask).sum().backward()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, sum(storages.values())


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """Fit a power law by least squares in logarithms; return its exponent."""
    x, y = torch.tensor(sizes).double().log(), torch.tensor(values).double().log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def main() -> None:
    options = arguments(__doc__, seeds=5)
    lengths, widths, large = ((32, 64), (16, 32), 32) if options.quick else (LENGTHS, WIDTHS, LARGE_WIDTH)
    rounds = range(options.seeds)
    by_length = {name: [[time_and_memory(name, n, WIDTH) for n in lengths] for _ in rounds] for name in EXPONENTS}
    by_width = {name: [[time_and_memory(name, LENGTH, d)[0] for d in widths] for _ in rounds] for name in EXPONENTS}

    def seconds(name: str, rows: int) -> float:
        return time_and_memory(name, SHORT_LENGTH, large, rows)[0]

    ratios = {rows: [seconds("LSTM", rows) / seconds("Transformer", rows) for _ in rounds] for rows in (1, 64)}

    figure, panels = plt.subplots(1, 2, figsize=(9, 4))
    for name in EXPONENTS:
        means = torch.tensor(by_length[name]).mean(0)
        for panel, values, unit in zip(panels, means.unbind(1), ("s", "bytes"), strict=True):
            panel.loglog(lengths, values, marker="o", label=name, color=COLOURS[name])
            panel.set(xlabel="length N", ylabel=f"forward and backward, {unit}")
            panel.minorticks_off()
            panel.set_xticks(lengths, map(str, lengths))
    panels[0].legend()

    predictions = []
    for name, (of_length, of_width) in EXPONENTS.items():
        for index, quantity in enumerate(("time_length", "memory_length")):
            exponents = [exponent(lengths, [values[index] for values in steps]) for steps in by_length[name]]
            predictions.append(check(quantity, exponents, of_length - 0.2, of_length + 0.2, name=name))
        exponents = [exponent(widths, times) for times in by_width[name]]
        predictions.append(check("time_width", exponents, of_width - 0.2, of_width + 0.2, name=name))
    predictions += [check("ratio", values, most=1, rows=rows) for rows, values in ratios.items()]
    publish("layer_cost", predictions, figure, options)


if __name__ == "__main__":
    main()
