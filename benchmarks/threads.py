"""How training goes beside other work, by how long waiting threads spin: python benchmarks/threads.py [--help]

The step of `tiny` in train_step.py, on a quiet machine and beside one busy loop; each measurement is a process of its
own, and the policies take turns, each round with another one first. "heedful" adapts while it trains; the others are
fixed before torch is imported.
"""

import os
import statistics
import subprocess
import sys
import time
from collections import deque
from contextlib import contextmanager

import record
import torch
from rich.console import Console
from rich.table import Table
from train_step import CELLS, TINY, batches, heedful

from heedful.machine import choose_precision, prepare_process, wait_policy
from heedful.machine.other_work import WaitPolicy

POLICIES = {
    "torch's own": {},
    "heedful": {},
    "OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
AS_AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
WARM_UP = 3.0  # seconds, in which the policy sees the other work too


def measure(policy: str, seconds: float) -> float:
    """Tokens a second of this process."""
    prepare_process()
    torch.manual_seed(0)
    step = heedful(TINY, record.CPU, choose_precision(record.CPU).precision)
    texts = batches(97, CELLS, 1, record.CPU)
    adaptive = wait_policy(record.CPU, lambda _: None) if policy == "heedful" else WaitPolicy(None, lambda _: None)
    tokens, number, begin = 0, 0, time.perf_counter()
    with adaptive:
        while (now := time.perf_counter()) < begin + WARM_UP + seconds:
            batch = texts[number % len(texts)]
            step(batch)
            adaptive.adapt()
            tokens += batch.tokens if now > begin + WARM_UP else 0
            number += 1
    return tokens / (time.perf_counter() - begin - WARM_UP)


@contextmanager
def busy_processes(count: int):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--avx2", action="store_true", help="as an AVX2 processor, simulated")
    parser.add_argument("--one", choices=POLICIES, help="measure one policy in this process, print the figure")
    options = parser.parse_args()
    if options.one:
        print(measure(options.one, options.seconds))
        return
    results: dict[str, dict[int, list[float]]] = {policy: {0: [], 1: []} for policy in POLICIES}
    order = deque(POLICIES)
    for _ in range(options.rounds):
        for others in (0, 1):
            for policy in order:
                surroundings = os.environ | POLICIES[policy] | (AS_AVX2 if options.avx2 else {})
                command = [sys.executable, __file__, "--one", policy, "--seconds", str(options.seconds)]
                with busy_processes(others):
                    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=surroundings)
                results[policy][others].append(float(run.stdout))
        order.rotate(-1)
    alone = statistics.median(results["torch's own"][0])
    table = Table(title="training, tokens/s, and as a share of torch's own on a quiet machine", title_justify="left")
    for column in ("policy", "quiet", "share", "beside one busy loop", "share"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for policy, found in results.items():
        quiet, beside = (statistics.median(found[others]) for others in (0, 1))
        table.add_row(policy, f"{quiet:,.0f}", f"{quiet / alone:.2f}", f"{beside:,.0f}", f"{beside / alone:.2f}")
    Console(width=110).print(table)
    record.append(__file__, record.machine(options.threads) | {"avx2": options.avx2, "results": results})


if __name__ == "__main__":
    main()
