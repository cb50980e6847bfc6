"""Timing of training systems against each other: each measurement is a process of its own, and systems take turns."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import record
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from heedful.machine import choose_device
from heedful.machine.process import keep_freed_memory
from heedful.machine.speed import matmul_speed, timed

ON_GPU = 10  # times as many steps on a GPU, since they are shorter


class Batch(Protocol):
    """Protocol of a batch of any kind, with a number of tokens."""

    @property
    def tokens(self) -> int:
        """Number of tokens of a batch, on both sides, without padding."""
        ...


Step = Callable[[Any], object]


@dataclass(frozen=True)
class System:
    """System to time: a function that makes its training step, its precision, and settings of its process."""

    make: Callable[[Any, torch.device], Step]  # of the model's settings and a device
    precision: str
    keeps_freed: bool = False
    shimmed: bool = False


@dataclass(frozen=True)
class Size:
    """Size of a benchmark: model settings, batches, cells of a batch, and numbers of warm-up and timed steps."""

    config: Any
    batches: Callable[[int, int, int, torch.device], Sequence[Batch]]  # of count, cells, seed and device
    cells: int
    warm_up: int
    steps: int


@dataclass(frozen=True)
class Race:
    """Systems that compute the same mathematics; the first that takes part is the reference of the comparison."""

    script: str  # its __file__
    systems: dict[str, System]
    sizes: dict[str, Size]
    flops: Callable[[Any, Any], float]  # of a step, by model settings and batch


@dataclass(frozen=True)
class Measured:
    """Results of timing a system in one process."""

    tokens: float  # a second
    useful: float  # FLOP/s without padding
    peak: float  # GB of memory


def plain_step(
    model: nn.Module, loss: Callable[[Any], Tensor], optimizer: torch.optim.Optimizer, autocast: bool
) -> Step:
    """Make the usual training step for a loss of batches: forward, backward, optimizer."""
    device = next(model.parameters()).device
    model.train()

    def step(batch: Batch) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            value = loss(batch)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def measure(race: Race, system: System, size: Size, cells: int, seed: int, device: torch.device) -> Measured:
    """Time the training steps of a system in this process."""
    if system.keeps_freed:
        keep_freed_memory()
    torch.manual_seed(0)
    warm_up, steps = (count * (ON_GPU if device.type == "cuda" else 1) for count in (size.warm_up, size.steps))
    batches = size.batches(warm_up + steps, cells, seed, device)
    step = system.make(size.config, device)
    for batch in batches[:warm_up]:
        step(batch)
    measured = batches[warm_up:]
    stream = iter(measured)
    seconds = timed(lambda: step(next(stream)), steps, device)
    flops = sum(race.flops(size.config, batch) for batch in measured)
    return Measured(sum(batch.tokens for batch in measured) / seconds, flops / seconds, record.peak(device))


def table(title: str, race: Race, results: dict[str, list[Measured]], limits: dict[str, float]) -> Table:
    """Make a table of results with a line per system."""
    ours = next(iter(results))
    shown = Table(title=title, title_justify="left")
    for column in ("system", "tokens/s", "lowest", "highest", f"{ours} is", "TFLOP/s", "of the limit", "peak GB"):
        shown.add_column(column, justify="left" if column == "system" else "right")
    fastest = statistics.median(run.tokens for run in results[ours])
    for name, runs in results.items():
        tokens, useful = [run.tokens for run in runs], statistics.median(run.useful for run in runs)
        shown.add_row(
            name,
            *(f"{value:,.0f}" for value in (statistics.median(tokens), min(tokens), max(tokens))),
            f"{fastest / statistics.median(tokens):.2f} times",
            f"{useful / 1e12:,.3f}",
            f"{useful / limits[race.systems[name].precision]:.0%}",
            f"{max(run.peak for run in runs):.2f}",
        )
    return shown


def run(race: Race, description: str | None) -> None:
    """Time the systems and sizes given on the command line, print a table per size, and append results to a file."""
    parser = record.parser(description)
    parser.add_argument("--sizes", nargs="+", choices=race.sizes, default=list(race.sizes))
    parser.add_argument("--systems", nargs="+", choices=race.systems, default=list(race.systems), metavar="NAME")
    parser.add_argument("--cells", type=int, help="of a batch, instead of the size's own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--shim", type=Path, help="library that makes MKL take its AVX-512 kernels")
    parser.add_argument("--one", choices=race.systems, help="measure one system in this process, print the figures")
    options = parser.parse_args()
    device = choose_device(options.device)
    torch.set_num_threads(options.threads)
    if options.one:
        size = race.sizes[options.sizes[0]]
        cells = options.cells or size.cells
        print(json.dumps(asdict(measure(race, race.systems[options.one], size, cells, options.seed, device))))
        return

    def apart(name: str, size: str, seed: int) -> Measured:
        environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
        if race.systems[name].shimmed and options.shim:
            environment["LD_PRELOAD"] = str(options.shim)
        settings = {"one": name, "sizes": size, "threads": options.threads, "seed": seed, "device": options.device}
        settings |= {"cells": options.cells} if options.cells else {}
        arguments = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        command = [sys.executable, race.script, *arguments]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        return Measured(**json.loads(output))

    console = Console(width=130)
    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    limits = {name: matmul_speed(4096, 512, 2048, kind, device) for name, kind in kinds.items()}
    if published := record.published_limit(device):
        limits["bfloat16"] = published
    facts = record.machine(options.threads, device) | {"shim": options.shim is not None, "limits": limits}
    console.print(facts)
    for size in options.sizes:
        results: dict[str, list[Measured]] = {name: [] for name in options.systems}
        for number in range(options.rounds):
            for name, runs in results.items():
                runs.append(apart(name, size, options.seed + number))
        console.print(table(f"{size}: training", race, results, limits))
        figures = {name: [asdict(run) for run in runs] for name, runs in results.items()}
        cells = options.cells or race.sizes[size].cells
        record.append(race.script, facts | {"size": size, "cells": cells, "results": figures})
