"""Time and memory of a layer against length and width: python laboratory/layer_cost.py [--help]

Exponents are the slopes of log time, or log memory, over the longest lengths or the largest widths.
"""

import math
import time

import findings
import matplotlib.pyplot as plt
import torch
from findings import Check
from opponents import COLOURS, classifier
from torch.autograd.graph import saved_tensors_hooks

from heedful.nn.masks import AttentionMask

EXPONENTS = {"LSTM": (1, 2), "CNN, 2 layers": (1, 2), "Transformer": (2, 1)}  # of N and of d in the table
LENGTHS, WIDTH = (512, 1024, 2048, 4096), 64
WIDTHS, LENGTH = (256, 512, 1024), 64
SHORT, SHORT_WIDTH = 32, 512  # length and width at which a recurrent layer may be the cheaper one


def step(name: str, length: int, width: int, rows: int = 1) -> tuple[float, float]:
    """Seconds of the best of three forward and backward passes, and the bytes that autograd keeps."""
    stack = classifier(name, width, 5, 2).backbone.stack
    x = torch.randn(rows, length, width, requires_grad=True)
    mask = AttentionMask(torch.ones(rows, length, dtype=torch.bool), length, causal=True)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        stack(x, mask).sum().backward()
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        stack(x, mask).sum().backward()
        best = min(best, time.perf_counter() - start)
    return best, sum(kept.values())


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """Exponent of a power law through the values, by least squares in logarithms."""
    x, y = torch.tensor(sizes).double().log(), torch.tensor(values).double().log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def main() -> None:
    options = findings.arguments(__doc__, seeds=5)
    lengths, widths, wide = ((32, 64), (16, 32), 32) if options.quick else (LENGTHS, WIDTHS, SHORT_WIDTH)
    runs = range(options.seeds)
    over_length = {name: [[step(name, n, WIDTH) for n in lengths] for _ in runs] for name in EXPONENTS}
    over_width = {name: [[step(name, LENGTH, d)[0] for d in widths] for _ in runs] for name in EXPONENTS}
    ratios = {
        rows: [step("LSTM", SHORT, wide, rows)[0] / step("Transformer", SHORT, wide, rows)[0] for _ in runs]
        for rows in (1, 64)
    }
    figure, panels = plt.subplots(1, 2, figsize=(9, 4))
    for name in EXPONENTS:
        for panel, place, unit in ((panels[0], 0, "s"), (panels[1], 1, "bytes")):
            values = torch.tensor(over_length[name])[:, :, place].mean(0)
            panel.loglog(lengths, values, marker="o", label=name, color=COLOURS[name])
            panel.set(xlabel="length N", ylabel=f"forward and backward, {unit}")
            panel.minorticks_off()
            panel.set_xticks(lengths, map(str, lengths))
    panels[0].legend()
    checks = []
    for name, (in_length, in_width) in EXPONENTS.items():
        near = [(number - 0.2, number + 0.2) for number in (in_length, in_width)]
        for place, quantity in enumerate(("time_length", "memory_length")):
            slopes = [slope(lengths, [values[place] for values in run]) for run in over_length[name]]
            checks.append(Check(quantity, slopes, *near[0], {"name": name}))
        checks.append(Check("time_width", [slope(widths, run) for run in over_width[name]], *near[1], {"name": name}))
    checks += [Check("ratio", found, most=1, case={"rows": rows}) for rows, found in ratios.items()]
    findings.publish("layer_cost", checks, figure, options)


if __name__ == "__main__":
    main()
