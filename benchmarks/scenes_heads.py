"""What the heads of a translator of scenes do, and what they are worth: python benchmarks/scenes_heads.py RUN [--help]

RUN was trained by `heedful train recipes/scenes-en-de --data DATA`. Its cross-attention is compared with the gold
alignment of the validation set, each head of the model is switched off during whole searches over that set, and
minimal pairs are put to the model beside control pairs.
"""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Any

import record
from rich.console import Console
from rich.table import Table

from heedful.checkpoint import load_model
from heedful.data.corpus import read_pairs
from heedful.evaluate import Scoring, score
from heedful.inspect_.capture.switches import WAYS, heads
from heedful.inspect_.development import alignment, gold_alignment
from heedful.inspect_.experiments.ablation import cost
from heedful.inspect_.experiments.bias import shifts, summaries
from heedful.inspect_.experiments.contrasts import contrasts

PAIRS = Path(__file__).parent.parent / "docs/how-to/pairs-scenes.tsv"


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--sentences", type=int, default=500, help="of the validation set")
    parser.add_argument("--way", choices=WAYS, default="silent", help="how heads are switched off")
    parser.add_argument("--pairs", type=Path, default=PAIRS)
    options = parser.parse_args()
    loaded = load_model(options.run)
    translator = loaded.use()
    errors = alignment(translator, list(gold_alignment(loaded.recipe, options.sentences)))
    valid = loaded.recipe.data.valid
    assert valid is not None
    pairs = list(islice(read_pairs(valid, loaded.recipe.data), options.sentences))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    whole = translator.translate(sources)
    bleu = score(whole, [references], Scoring(metrics=("bleu",)))[0].value
    shown = Table("head", "alignment error", "BLEU without it", "change", "95 % interval", "p")
    rows: list[dict[str, Any]] = []
    for head in heads(translator.model):
        error = errors[head.block][head.number] if head.block in errors else None
        found = cost(translator, [head], sources, references, options.way, whole=whole)
        change = found.system.value - bleu
        rows.append(asdict(head) | {"alignment error": error, "change": change, "p": found.p_value})
        low, high = (found.system.mean + sign * found.system.interval for sign in (-1, 1))
        shown.add_row(
            f"{head.block}.{head.number}",
            "" if error is None else f"{error:.3f}",
            f"{found.system.value:.2f}",
            f"{change:+.2f}",
            f"{low:.2f} to {high:.2f}",
            f"{found.p_value:.3f}",
        )
    best = min((row for row in rows if row["alignment error"] is not None), key=lambda row: row["alignment error"])
    others = [row["change"] for row in rows if row is not best]
    kinds = summaries(list(shifts(translator, contrasts(options.pairs.read_text(encoding="utf-8").splitlines()))))
    probe = Table("lines", "count", "mean shift", "95 % interval", "mean |shift|", "both sources prefer their form")
    for kind, one in kinds.items():
        probe.add_row(
            kind,
            str(one.count),
            f"{one.shift.value:+.2f}",
            f"{one.shift.low:+.2f} to {one.shift.high:+.2f}",
            f"{one.size.value:.2f}",
            str(one.sided),
        )
    facts = record.machine(options.threads) | {
        "sentences": len(pairs),
        "way": options.way,
        "BLEU": bleu,
        "best aligned": best,
        "change without another head": {"mean": mean(others), "median": median(others)},
    }
    Console(width=120).print(facts, shown, probe)
    record.append(__file__, facts | {"heads": rows, "pairs": {kind: asdict(one) for kind, one in kinds.items()}})


if __name__ == "__main__":
    main()
