"""Speed and peak memory of two versions of heedful: python benchmarks/revisions.py OLD/src NEW/src --data demo/data

Each measurement is a separate process that uses `heedful.train` and `heedful.load` alone; the versions take turns, so
that other work on the machine affects both alike. Training: the median of the tokens per second that each version's
recipes/scenes-en-de logs every 50 updates, without the first 50. Decoding: sentences per second of the bundled en-de.
A ratio is the median of the ratios of the rounds; above 1 the new version is faster, or needs more memory.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from record import append, machine, parser

TRAIN = """
import json, statistics, sys
from pathlib import Path
import heedful
recipe, data, out = sys.argv[1:4]
heedful.train(recipe, out, data, set={"train.max_updates": 300, "train.validate_every": 300})
lines = [json.loads(line) for line in Path(out, "timings.jsonl").read_text().splitlines()]
speed = statistics.median(line["tokens_per_second"] for line in lines[1:] if "tokens_per_second" in line)
"""
DECODE = """
import sys, time
from pathlib import Path
import heedful
texts = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()[:1000]
translator = heedful.load("en-de")
translator.translate(texts[:50], beam={beam})
start = time.perf_counter()
translator.translate(texts, beam={beam})
speed = len(texts) / (time.perf_counter() - start)
"""
REPORT = """
import json, resource
print("RESULT", json.dumps({"speed": speed, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def measure(program: str, source: Path, arguments: list[str], threads: int) -> dict[str, float]:
    """Run a program in a process that imports heedful from `source`."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", program + REPORT, *arguments]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return json.loads(output.rpartition("RESULT ")[2])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("old", type=Path)
    options.add_argument("new", type=Path)
    options.add_argument("--data", type=Path, required=True, help="what `heedful scenes en-de` has made")
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    sources = {"old": arguments.old.resolve(), "new": arguments.new.resolve()}
    data = arguments.data.resolve()
    sentences = [str(data / "test.en")]

    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds):
            # The version that begins changes with each round, so that a machine that gets warm favours neither.
            for version in sorted(sources, reverse=turn % 2 == 1):
                recipe = str(sources[version].parent / "recipes/scenes-en-de/config.toml")
                out = str(Path(folder, f"{version}-{turn}"))
                programs: dict[str, tuple[str, list[str]]] = {
                    "train": (TRAIN, [recipe, str(data), out]),
                    "greedy": (DECODE.format(beam=1), sentences),
                    "beam 4": (DECODE.format(beam=4), sentences),
                }
                for name, (program, inputs) in programs.items():
                    result = measure(program, sources[version], inputs, arguments.threads)
                    results.setdefault(name, {}).setdefault(version, []).append(result)

    line: dict[str, Any] = machine(arguments.threads) | {"rounds": arguments.rounds}
    for name, versions in results.items():
        for quantity in ("speed", "peak"):
            pairs = zip(versions["old"], versions["new"], strict=True)
            line[f"{name}, {quantity}"] = round(median(new[quantity] / old[quantity] for old, new in pairs), 3)
    append(__file__, line)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
