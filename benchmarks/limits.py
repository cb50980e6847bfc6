"""Speed limits of this machine: python benchmarks/limits.py [--help]

Matrix products in the shapes of Transformers, copies of memory, the smallest operation. Appends a line to limits.jsonl.
"""

import record
import torch
from rich.console import Console
from rich.table import Table

from heedful.machine import choose_device
from heedful.machine.speed import copy_speed, matmul_speed, operation_overhead

SHAPES = {
    "feed-forward network of base": (4096, 512, 2048),
    "feed-forward network of tiny": (4096, 128, 256),
    "vocabulary of base": (4096, 512, 9712),
    "vocabulary of tiny": (4096, 128, 9712),
    "a search step of base, 64 sentences": (64, 512, 512),
    "a search step of tiny, 64 sentences with beam 5": (320, 128, 256),
}
KINDS = (torch.float32, torch.bfloat16)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = choose_device(options.device)
    console = Console(width=110)
    shown = Table("matrix product", "rows x inner x columns", "float32, GFLOP/s", "bfloat16, GFLOP/s")
    speeds = {}
    for name, shape in SHAPES.items():
        speeds[name] = [matmul_speed(*shape, kind, device) for kind in KINDS]
        shown.add_row(name, " x ".join(map(str, shape)), *(f"{speed / 1e9:,.0f}" for speed in speeds[name]))
    facts = record.machine(options.threads) | {
        "device": str(device),
        "copy_bytes_per_second": copy_speed(device),
        "smallest_operation_seconds": operation_overhead(device),
    }
    console.print(facts, shown)
    record.append(__file__, facts | {"matmul_flops": speeds})


if __name__ == "__main__":
    main()
