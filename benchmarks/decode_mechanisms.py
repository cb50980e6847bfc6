"""Speed gained by each mechanism of beam search: python benchmarks/decode_mechanisms.py MODEL TEXT [--help]

A translator is timed on a text with a sentence per line: as it is, and with one mechanism after another replaced by
its plain alternative. The variants take turns in one process.
"""

import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from unittest import mock

import record
import torch
from decode import Rows, read_rows, search_parser
from rich.console import Console
from rich.table import Table

from heedful.checkpoint import LoadedModel, load_model
from heedful.machine.process import keep_freed_memory
from heedful.machine.speed import timed
from heedful.predictors.translator import Translator
from heedful.search.hypothesis import Hypothesis

Search = Callable[[Rows], list[list[Hypothesis]]]


def as_they_come(rows: Rows, _: int) -> list[list[int]]:
    """Group sentences into batches of 64 in their order, without sorting by length."""
    return [list(range(start, min(start + 64, len(rows)))) for start in range(0, len(rows), 64)]


REPLACEMENTS = {
    "batches one after another on all cores": (
        "search.source_to_target.map_on_cores",
        lambda search, rows, _: map(search, rows),
    ),
    "batches of 64 sentences as they come": ("search.source_to_target.batches", as_they_come),
    "torch's topk": ("search.top_k.largest", torch.topk),
}
LINEAR_OUTPUT = ("nn.embedding.OutputProjection.forward", torch.nn.Linear.forward)


def replaced(search: Search, place: str, by: object) -> Search:
    """Make a copy of a search in which the function at `place` in heedful is replaced."""

    def run(rows: Rows) -> list[list[Hypothesis]]:
        with mock.patch(f"heedful.{place}", by):
            return search(rows)

    return run


def searches(loaded: LoadedModel, beam: int) -> dict[str, Search]:
    """Make the searches to compare: heedful's own, and variants with one mechanism replaced each."""
    config = replace(loaded.recipe.decode, beam=beam)
    whole = Translator(loaded.model, loaded.tokenizers, config).search_rows

    def one_by_one(rows: Rows) -> list[list[Hypothesis]]:
        return [whole([row])[0] for row in rows]

    return {
        "heedful": whole,
        **{name: replaced(whole, *replacement) for name, replacement in REPLACEMENTS.items()},
        "searched to the bound": Translator(loaded.model, loaded.tokenizers, replace(config, patience=0.0)).search_rows,
        "one by one": one_by_one,
        "one by one, the output as a linear layer": replaced(one_by_one, *LINEAR_OUTPUT),
    }


def main() -> None:
    options = search_parser(__doc__).parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    loaded = load_model(options.model)
    rows = read_rows(loaded.tokenizers, options.text, options.lines)
    figures: dict[int, dict[str, list[float]]] = {}
    for beam in options.beams:
        compared = searches(loaded, beam)
        compared["heedful"](rows[:100])
        rates = figures[beam] = {name: [] for name in compared}
        for _ in range(options.rounds):
            for name, search in compared.items():
                rates[name].append(len(rows) / timed(partial(search, rows), 1, record.CPU))
    shown = Table("search", *(f"beam {beam}, sentences/s" for beam in options.beams))
    for name in figures[options.beams[0]]:
        shown.add_row(name, *(f"{statistics.median(figures[beam][name]):,.0f}" for beam in options.beams))
    facts = record.machine(options.threads) | {"model": options.model.name, "lines": options.lines}
    Console(width=110).print(facts, shown)
    record.append(__file__, facts | {"rates": figures})


if __name__ == "__main__":
    main()
