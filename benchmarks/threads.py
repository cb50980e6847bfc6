"""Training speed beside other processes, by how long waiting threads spin: python benchmarks/threads.py [--help]

One process takes the step of `tiny` in train_step.py, with torch's own wait policy and with heedful's, which adapts
during training; alone and beside busy loops. The cases take turns, with another case first in each round, and are
compared within a round, since the speed of a shared machine varies by the minute. --avx2: as an AVX2 processor.
"""

import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, product

import record
import torch
from rich.console import Console
from rich.table import Table
from train_step import CELLS, TINY, batches, heedful

from heedful.machine import choose_precision, prepare_process, wait_policy
from heedful.machine.other_work import WaitPolicy

TORCH, HEEDFUL = "torch's own", "heedful"
AS_AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
SETTLE = 2.5  # seconds in which the policy notices the other work
Rounds = list[dict[tuple[str, int], float]]


def policy(name: str) -> WaitPolicy:
    return wait_policy(record.CPU, lambda _: None) if name == HEEDFUL else WaitPolicy(None, lambda _: None)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def speed(step: Callable[[], int], name: str, seconds: float) -> float:
    """Measure the tokens per second of training for some seconds, once the wait policy has settled."""
    with policy(name) as adaptive:
        go_on(step, adaptive, SETTLE)
        begin = time.perf_counter()
        tokens = go_on(step, adaptive, seconds)
        return tokens / (time.perf_counter() - begin)


def go_on(step: Callable[[], int], adaptive: WaitPolicy, seconds: float) -> int:
    """Train for some seconds; return the number of tokens."""
    end, tokens = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        tokens += step()
        adaptive.adapt()
    return tokens


def measure(rounds: int, seconds: float, beside: list[int]) -> Rounds:
    prepare_process()
    torch.manual_seed(0)
    update = heedful(TINY, record.CPU, choose_precision(record.CPU).precision)
    texts = cycle(batches(97, CELLS, 1, record.CPU))

    def step() -> int:
        batch = next(texts)
        update(batch)
        return batch.tokens

    speed(step, TORCH, seconds)  # memory and kernels are there afterwards
    turns = deque(product((TORCH, HEEDFUL), (0, *beside)))
    measured: Rounds = []
    for _ in range(rounds):
        found = {}
        for name, loops in turns:
            with busy_loops(loops):
                found[name, loops] = speed(step, name, seconds)
        measured.append(found)
        turns.rotate(-1)
    return measured


def table(measured: Rounds, beside: list[int]) -> Table:
    shown = Table(title="training, tokens/s", title_justify="left")
    for column in ("busy loops", TORCH, HEEDFUL, "heedful is", "torch's own keeps", "heedful keeps", "at least"):
        shown.add_column(column, justify="right")
    for loops in (0, *beside):
        speeds = (statistics.median(found[name, loops] for found in measured) for name in (TORCH, HEEDFUL))
        faster = statistics.median(found[HEEDFUL, loops] / found[TORCH, loops] for found in measured)
        kept = {name: [found[name, loops] / found[name, 0] for found in measured] for name in (TORCH, HEEDFUL)}
        shares = (*map(statistics.median, kept.values()), min(kept[HEEDFUL]))
        shown.add_row(
            str(loops), *(f"{value:,.0f}" for value in speeds), *(f"{value:.2f}" for value in (faster, *shares))
        )
    return shown


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--beside", type=int, nargs="*", default=[1], metavar="LOOPS", help="numbers of busy loops")
    parser.add_argument("--avx2", action="store_true", help="as a processor of AVX2, simulated")
    options = parser.parse_args()
    if options.avx2 and not AS_AVX2.items() <= os.environ.items():  # read when torch is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | AS_AVX2)
    measured = measure(options.rounds, options.seconds, options.beside)
    Console(width=110).print(table(measured, options.beside))
    raw = [{f"{name}, {loops} busy": round(value) for (name, loops), value in found.items()} for found in measured]
    record.append(__file__, record.machine(options.threads) | {"avx2": options.avx2, "rounds": raw})


if __name__ == "__main__":
    main()
