"""Speed of the output projection for few rows on a CPU: python benchmarks/output_projection.py [--help]

The logits of 1 to 10 rows of hidden states, by torch's linear layer and by columns, for the vocabularies of Whisper,
GPT-2 and multi30k-en-de. The two take turns; medians of milliseconds, and of the ratio.
"""

import statistics
from functools import partial

import record
import torch
from rich.console import Console
from rich.table import Table

from heedful.machine.speed import timed
from heedful.nn.embedding import OutputProjection

SIZES = {"Whisper tiny": (384, 51_866), "GPT-2": (768, 50_257), "multi30k-en-de, 512 wide": (512, 9_712)}
ROWS = (1, 2, 3, 5, 7, 8, 10)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    shown = Table("model", "rows", "linear layer, ms", "by columns, ms", "linear / columns")
    facts, seconds = record.machine(options.threads) | {"rounds": options.rounds}, {}
    for name, (width, vocabulary) in SIZES.items():
        projection = OutputProjection(width, vocabulary, bias=False)
        for rows in ROWS:
            x = torch.randn(rows, width)
            ways = partial(torch.nn.Linear.forward, projection, x), partial(projection.by_columns, x)
            with torch.inference_mode():
                rounds = [[timed(way, 1, record.CPU) for way in ways] for _ in range(options.rounds + 1)][1:]
            linear, columns = map(statistics.median, zip(*rounds, strict=True))
            ratio = statistics.median(first / second for first, second in rounds)
            shown.add_row(name, str(rows), f"{1000 * linear:.2f}", f"{1000 * columns:.2f}", f"{ratio:.2f}")
            seconds[f"{name}, {rows} rows"] = rounds
    Console(width=110).print(facts, shown)
    record.append(__file__, facts | {"seconds": seconds})


if __name__ == "__main__":
    main()
