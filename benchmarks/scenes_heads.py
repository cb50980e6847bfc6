"""Alignment and worth of attention heads of scene translators: python benchmarks/scenes_heads.py RUN... [--help]

Each RUN was trained by `heedful train recipes/scenes-en-de-shallow --data DATA`, or by a recipe like it. Its
cross-attention is compared with the gold alignment of the validation set, each head of the model is switched off during
whole searches over that set, and minimal pairs are put to the model beside control pairs. The worth of every head is
written to the .jsonl file beside this script.
"""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Any

import record
from rich.console import Console
from rich.table import Table

from heedful.checkpoint import LoadedModel, load_model
from heedful.data.readers.corpus import read_pairs
from heedful.inspector.capture.recorder import WAYS, Head
from heedful.inspector.development import alignment, gold_alignment
from heedful.inspector.experiments.ablation import sweep
from heedful.inspector.experiments.minimal_pairs import contrasts, shifts, summaries
from heedful.predictors.translator import Translator

PAIRS = Path(__file__).parent.parent / "docs/how-to/pairs-scenes.tsv"


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--sentences", type=int, default=500, help="of the validation set")
    parser.add_argument("--way", choices=WAYS, default="silent", help="how heads are switched off")
    parser.add_argument("--pairs", type=Path, default=PAIRS)
    options = parser.parse_args()
    facts = record.machine(options.threads) | {"sentences": options.sentences, "way": options.way}
    list_of_pairs = options.pairs.read_text(encoding="utf-8").splitlines()
    heads = Table("run", "BLEU", "best aligned head", "its error", "BLEU without it", "p", "other heads, mean, median")
    heads.add_column("costs more than", justify="right")
    pairs = Table(
        "run", "pairs: mean shift", "95 % interval", "right", "controls: mean shift", "95 % interval", "|shift|"
    )
    differences = []
    for run in options.runs:
        loaded = load_model(run)
        weighed = weigh(loaded, options.sentences, options.way)
        best = min((row for row in weighed if "error" in row), key=lambda row: row["error"])
        others = [row["change"] for row in weighed if row is not best]
        differences.append(best["change"] - mean(others))
        heads.add_row(
            run.name,
            f"{best['whole']:.2f}",
            f"{best['block']}.{best['number']}",
            f"{best['error']:.3f}",
            f"{best['change']:+.2f}",
            f"{best['p']:.3f}",
            f"{mean(others):+.2f}, {median(others):+.2f}",
            f"{sum(best['change'] < other for other in others)} of {len(others)}",
        )
        found = summaries(list(shifts(loaded.use(), contrasts(list_of_pairs))))
        pair, control = found["pair"], found["control"]
        pairs.add_row(
            run.name,
            f"{pair.shift.value:+.2f}",
            f"{pair.shift.low:+.2f} to {pair.shift.high:+.2f}",
            f"{pair.sided} of {pair.count}",
            f"{control.shift.value:+.2f}",
            f"{control.shift.low:+.2f} to {control.shift.high:+.2f}",
            f"{control.size.value:.2f}",
        )
        shape, train = loaded.recipe.model, loaded.recipe.train
        model = {"layers": [shape.encoder_layers, shape.decoder_layers], "heads": shape.heads, "seed": train.seed}
        kinds = {kind: asdict(one) for kind, one in found.items()}
        record.append(__file__, facts | model | {"weighed": weighed, "pairs": kinds})
    console = Console(width=140)
    console.print(facts, heads, pairs)
    console.print(
        f"BLEU without the best aligned head less that without another, mean over runs: {mean(differences):+.2f}"
    )


def weigh(loaded: LoadedModel, sentences: int, way: str) -> list[dict[str, Any]]:
    """Measure for each head the BLEU lost without the head and, for cross-attention, its alignment error."""
    translator, valid = loaded.use_as(Translator), loaded.recipe.data.valid
    assert valid is not None
    errors = alignment(translator, list(gold_alignment(loaded.recipe, sentences)))
    pairs = list(islice(read_pairs(valid, loaded.recipe.data), sentences))
    found = sweep(translator, [pair.source for pair in pairs], [pair.target for pair in pairs], way)
    return [
        asdict(head)
        | {"whole": cost.baseline.value, "change": cost.system.value - cost.baseline.value, "p": cost.p_value}
        | error_of(head, errors)
        for head, cost in found
    ]


def error_of(head: Head, errors: dict[str, list[float]]) -> dict[str, float]:
    """Return the alignment error of a cross-attention head, or nothing for other heads."""
    return {"error": errors[head.block][head.number]} if head.block in errors else {}


if __name__ == "__main__":
    main()
