"""Cost of taps, the hooks that record a model, while not in use: python benchmarks/taps.py [--help]

A base model reads a batch in four ways: newly made, after a recording, while a block of cross-attention is recorded,
and while everything is recorded. The ways take turns; the median of the rounds counts. Taps are hooks that are removed
after use, so that the first two ways run the same code: their ratio is the noise of the machine.
"""

import statistics
import time
from collections.abc import Collection

import record
import torch
from rich.console import Console
from rich.table import Table

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.inspector.capture.recorder import recording

WAYS: dict[str, Collection[str]] = {
    "never watched": (),
    "watched before": (),
    "one block watched": ("dec.5.cross.attn",),
    "everything watched": ("*",),
}


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    models = {name: EncoderDecoder(ModelConfig(), 32_000, 32_000).eval() for name in ("fresh", "watched")}
    ids = torch.randint(4, 32_000, (16, 60))
    padding_mask = torch.ones_like(ids, dtype=torch.bool)
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    with torch.inference_mode():
        with recording(models["watched"], ["*"]):
            models["watched"](ids, padding_mask, ids, padding_mask)
        for _ in range(options.rounds):
            for name, kept in WAYS.items():
                model = models["fresh" if name == "never watched" else "watched"]
                with recording(model, kept):
                    start = time.perf_counter()
                    model(ids, padding_mask, ids, padding_mask)
                    times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    shown = Table("", "milliseconds", "times the first")
    for name, value in medians.items():
        shown.add_row(name, f"{1000 * value:.1f}", f"{value / medians['never watched']:.3f}")
    facts = record.machine(options.threads)
    Console(width=100).print(facts, shown)
    record.append(__file__, facts | {"seconds": medians})


if __name__ == "__main__":
    main()
