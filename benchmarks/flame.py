"""Flame graphs of the time in a training step: python benchmarks/flame.py [--help]

Above, a step in float32 without any of the mechanisms that train_mechanisms.py names; below, the same step as heedful
takes it, on the same scale. A bar on top of another was called by it: modules in the forward pass, torch's operations
on them; on the right are the backward pass and the optimizer.
"""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import record
import torch
from matplotlib.axes import Axes
from race import Step
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from train_mechanisms import REPLACEMENTS
from train_step import SIZES, heedful

from heedful.machine.process import keep_freed_memory

STEPS = 3
SMALLEST = 0.002  # share of the width; smaller bars are not drawn
READABLE = 0.0058  # share of the width that a character of a label takes
BACKWARD = "autograd::engine"
COLOURS = {"module": "#f0b35a", "forward": "#e8743b", "backward": "#5a8fc8", "other": "#b9b9b9"}


@dataclass
class Node:
    """Node of a call tree: milliseconds spent in a call and its callees, summed over its occurrences on one path."""

    time: float = 0.0
    below: dict[str, "Node"] = field(default_factory=lambda: defaultdict(Node))


def labelled_call(module: nn.Module, *arguments: Any, **options: Any) -> Any:
    """Call a module under the name of its class, which the profiler records."""
    with record_function(type(module).__name__):
        return module._call_impl(*arguments, **options)


def tree(step: Step, stream: Iterable[Any]) -> Node:
    """Profile training steps as a call tree, in milliseconds per step."""
    root = Node()
    with (
        profile(activities=[ProfilerActivity.CPU]) as profiler,
        mock.patch.object(nn.Module, "__call__", labelled_call),
    ):
        for batch in stream:
            step(batch)
    for event in profiler.events() or ():
        path, parent = [event.name], event.cpu_parent
        while parent is not None:
            path.append(parent.name)
            parent = parent.cpu_parent
        node = root
        for name in reversed(path):
            node = node.below[name]
        node.time += event.cpu_time_total / 1e3 / STEPS
    root.time = sum(child.time for child in root.below.values())
    return root


def draw(axes: Axes, node: Node, left: float, depth: int, kind: str, scale: float) -> None:
    """Draw the callees of a node as bars, as wide as their time, on the bar of the node."""
    for name, child in sorted(node.below.items(), key=lambda item: (BACKWARD in item[0], -item[1].time)):
        if child.time < SMALLEST * scale:
            continue
        shown = "backward" if kind == "backward" or BACKWARD in name else kind_of(name)
        axes.barh(depth, child.time, 0.94, left, color=COLOURS[shown], edgecolor="white", linewidth=0.4)
        short = name.removeprefix(f"{BACKWARD}::evaluate_function: ").removeprefix("aten::")
        room = int(child.time / scale / READABLE)
        if room > 2:
            label = short if len(short) <= room else f"{short[: room - 1]}…"
            axes.text(left + child.time / 2, depth, label, ha="center", va="center", fontsize=6.5)
        draw(axes, child, left, depth + 1, shown, scale)
        left += child.time


def kind_of(name: str) -> str:
    """Classify a call outside the backward pass by name: "module", "forward" or "other"."""
    if name[0].isupper() and "::" not in name and "." not in name:
        return "module"
    return "forward" if name.startswith("aten::") else "other"


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--out", type=Path, default=Path("docs/flame.svg"), help="where to draw")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    size = SIZES[options.size]
    warm_up, *stream = size.batches(STEPS + 1, size.cells, 1, record.CPU)
    trees = {}
    with ExitStack() as stack:
        for place, by in REPLACEMENTS.values():
            stack.enter_context(mock.patch(place, by))
        step = heedful(size.config, record.CPU, "float32")
        step(warm_up)
        trees["none of the mechanisms, float32"] = tree(step, stream)
    keep_freed_memory()
    step = heedful(size.config, record.CPU, "bfloat16")
    step(warm_up)
    trees["heedful, bfloat16"] = tree(step, stream)
    figure, panels = plt.subplots(2, 1, figsize=(12, 8), sharex=True, layout="constrained")
    scale = max(root.time for root in trees.values())
    for panel, (title, root) in zip(panels, trees.items(), strict=True):
        draw(panel, root, 0.0, 0, "other", scale)
        panel.set_title(f"{title}: {root.time:,.0f} ms a step", loc="left", fontsize=10)
        panel.set_yticks([])
        panel.spines[["top", "right", "left"]].set_visible(False)
    panels[1].set_xlabel("milliseconds")
    figure.savefig(options.out)
    print({title: round(root.time) for title, root in trees.items()})


if __name__ == "__main__":
    main()
