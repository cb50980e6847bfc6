"""Training speed and memory of one process with 2 threads, and of 2 processes with 1 thread each.

The processes hold the weights each by itself, or together (parallel.shard = "full"). All train the same updates of a
translator of size vaswani-base on random ids; rounds are interleaved, and the median of each way is told.

    python benchmarks/processes.py --rounds 5 --updates 10
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import record
import torch
from torch import nn

from heedful.architectures import EncoderDecoder
from heedful.config.load import make_recipe
from heedful.config.schema import ParallelConfig
from heedful.distributed.launch import launch
from heedful.distributed.reducer import (
    SINGLE_PROCESS,
    ProcessGroup,
    Reducer,
    end_process,
    join_process_group,
    reducer_factory,
)
from heedful.tasks.parts.sequence_to_sequence import PairBatch, collate, loss
from heedful.training.training_step import TrainingStep

VOCABULARY = 8000
ROWS, LENGTH = 32, 32  # of each of the two batches of an update
WARM = 2  # updates that are not timed
WAYS = {  # processes, threads of each, parallel.shard or "after"
    "1 process of 2 threads": (1, 2, "none"),
    "2 processes of 1 thread": (2, 1, "none"),
    "2 processes of 1 thread, sums after the backward pass": (2, 1, "after"),
    "2 processes of 1 thread, sharded": (2, 1, "full"),
}


class Afterwards(ProcessGroup):
    """Process group that sums gradients after the backward pass only."""

    def gradient_sums(self, model: nn.Module) -> None:
        """Return None: no sum begins earlier."""


def batch(number: int) -> PairBatch:
    """Draw a batch of pairs."""
    random = np.random.default_rng(number)
    source, target = random.integers(4, VOCABULARY, (2, ROWS, LENGTH))
    return collate(source, target, record.CPU)


def measure(reducer: Reducer, preset: str, updates: int) -> dict[str, float]:
    """Train, and return the tokens per second of all processes and the peak memory of this one."""
    recipe = make_recipe({"preset": preset, "train": {"precision": "float32", "accumulate": 2}})
    torch.manual_seed(1)
    model = EncoderDecoder(recipe.model, VOCABULARY, VOCABULARY)
    step = TrainingStep(model, lambda model, batch: [loss(model, batch, 0.1)], recipe, reducer)
    tokens, begin = 0, 0.0
    for number in range(1, WARM + updates + 1):
        if number == WARM + 1:
            tokens, begin = 0, time.perf_counter()
        own = [batch(2 * number + place) for place in reducer.shard(range(2))]
        tokens += step.update(own, number).tokens
    speed = tokens / (time.perf_counter() - begin)
    return {"tokens/s": speed, "GB": max(reducer.all_gather(record.peak()))}


def work(path: Path, preset: str, updates: int, threads: int, shard: str) -> None:
    """Measure in one of the processes; the first one writes the result."""
    torch.set_num_threads(threads)
    config = ParallelConfig(shard="full" if shard == "full" else "none")
    group = Afterwards if shard == "after" else reducer_factory(config, "cpu")
    with join_process_group(10, "cpu", group) as reducer:
        found = measure(reducer, preset, updates)
        if reducer.is_rank_zero:
            path.write_text(json.dumps(found))
        reducer.all_gather(0)
    if reducer is not SINGLE_PROCESS:
        end_process(0)


def once(way: str, preset: str, updates: int) -> dict[str, float]:
    """Measure one way in fresh processes."""
    processes, threads, shard = WAYS[way]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, __file__, "--work", str(path), preset, str(updates), str(threads), shard]
        code = launch(command, processes) if processes > 1 else subprocess.run(command, check=False).returncode
        assert code == 0, f"{way}: exit code {code}"
        return json.loads(path.read_text())


def main() -> None:
    """Measure all ways, round by round, and print their medians."""
    options = record.parser(__doc__)
    options.add_argument("--preset", default="vaswani-base")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--updates", type=int, default=10)
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="NAME")
    asked = options.parse_args()
    found: dict[str, list[dict[str, float]]] = {way: [] for way in asked.ways}
    for _ in range(asked.rounds):
        for way, measured in found.items():
            measured.append(once(way, asked.preset, asked.updates))
    sys.stdout.write("| way | tokens/s | GB, the largest process |\n| --- | --- | --- |\n")
    for way, measured in found.items():
        facts = {key: statistics.median(one[key] for one in measured) for key in ("tokens/s", "GB")}
        sys.stdout.write(f"| {way} | {facts['tokens/s']:,.0f} | {facts['GB']:.2f} |\n")
        told = {"way": way, "preset": asked.preset, "rounds": asked.rounds, "updates": asked.updates}
        record.append(__file__, record.machine(WAYS[way][1]) | told | facts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        place, size, updates, threads, shard = sys.argv[2:]
        work(Path(place), size, int(updates), int(threads), shard)
    else:
        main()
