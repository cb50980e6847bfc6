"""Rows of Table 3 of "Attention Is All You Need" in miniature: python laboratory/table_3.py --data DATA [--help]

The rows are presets of the paper's models, with widths divided by 8 and depths by 2. Each training appends a line to
table-3-runs.jsonl, which is part of the repository, and the same command resumes after an interruption.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from captions import caption_arguments
from models import BLUE, BROWN
from report import RESULTS, ROOT, Prediction, check, publish

import heedful
from heedful.config.presets import TABLE_3

WIDTHS, WIDTH_DIVISOR = ("d_model", "d_ff", "d_k", "d_v"), 8
DEPTHS, DEPTH_DIVISOR = ("encoder_layers", "decoder_layers"), 2
NAMES = ("base", "A-h1", "A-h4", "D-dropout0.0", "D-smoothing0.0", "E-learned")
ROWS = {row.name: row for row in TABLE_3 if row.name in NAMES}
PAPER = {"d_model": 512, "d_ff": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6}  # the base model
UPDATES, WARMUP = 600, 200
TRAINING: dict[str, Any] = {
    "tokenizer.vocab_size": 4000,
    "model.dropout": 0.1,
    "model.positions": "sinusoidal",
    "model.norm": "post",
    "train.average_last": 1,
    "decode.beam": 4,
    "decode.penalty": "gnmt",
    "decode.alpha": 0.6,
}
SMALL = {"tokenizer.vocab_size": 500, "decode.max_extra": 3}  # with --quick


class Run(NamedTuple):
    """One training of a row, and its scores on the validation set."""

    row: str
    seed: int
    precision: str
    perplexity: float
    bleu: float


def main() -> None:
    options = caption_arguments(
        __doc__,
        seeds=3,
        models="table-3",
        precision={"default": "float32", "choices": ("float32", "bfloat16"), "help": "the faster one on your machine"},
        only={"nargs": "+", "choices": NAMES, "help": "train some of the rows, in one of several processes"},
    )
    file = options.out / RESULTS / "table-3-runs.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(1, options.seeds + 1):
        for name in options.only or NAMES:
            if not any((run.row, run.seed) == (name, seed) for run in stored(file)):
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(trained(name, seed, options)._asdict()) + "\n")
    runs = [run for run in stored(file) if run.row in NAMES and run.seed <= options.seeds]
    if len(runs) == len(NAMES) * options.seeds:
        results = {name: sorted(run for run in runs if run.row == name) for name in NAMES}
        publish("table_3", predictions(results), drawn(results), options, updates=UPDATES, points=points(results))


def stored(file: Path) -> list[Run]:
    """Read the results of the trainings so far."""
    return [Run(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def trained(name: str, seed: int, options: Any) -> Run:
    """Train the model of a row, or resume its training."""
    updates = 2 if options.quick else UPDATES
    changes = settings(name) | {
        "train.seed": seed,
        "train.threads": options.threads,
        "train.precision": options.precision,
        "train.max_updates": updates,
        "train.validate_every": updates,
        "optimizer.warmup": min(WARMUP, updates // 2),
    }
    folder = options.work / f"{name}-{seed}"
    changes |= SMALL if options.quick else {}
    scores = heedful.train(ROOT / "recipes/multi30k-en-de", folder, options.data, changes).scores
    return Run(name, seed, options.precision, scores["perplexity"], scores["bleu"])


def settings(name: str) -> dict[str, Any]:
    """Return the settings of a row that differ from the recipe: those of the paper, smaller."""
    model = PAPER | ROWS[name].changes.get("model", {})
    model |= {key: model[key] // WIDTH_DIVISOR for key in WIDTHS if key in model}
    model |= {key: model[key] // DEPTH_DIVISOR for key in DEPTHS}
    training = {f"train.{key}": value for key, value in ROWS[name].changes.get("train", {}).items()}
    return TRAINING | {f"model.{key}": value for key, value in model.items()} | training


def predictions(results: Mapping[str, Sequence[Run]]) -> list[Prediction]:
    """Check what sections 5.4 and 6.2 of the paper say about the rows."""
    claims: list[tuple[str, str, dict[str, float]]] = [  # row, score, and bounds of its difference from the base model
        ("A-h1", "bleu", {"most": 0}),
        ("A-h4", "bleu", {"most": 0}),
        ("D-dropout0.0", "perplexity", {"least": 0}),
        ("D-dropout0.0", "bleu", {"most": 0}),
        ("D-smoothing0.0", "perplexity", {"most": 0}),
        ("D-smoothing0.0", "bleu", {"most": 0}),
        ("E-learned", "bleu", {"least": -0.5, "most": 0.5}),
    ]
    return [check(score, differences(results, row, score), **bounds, row=row) for row, score, bounds in claims]


def differences(results: Mapping[str, Sequence[Run]], row: str, score: str) -> list[float]:
    """Return the differences of a row from the base model with the same seed: of BLEU, or of the log of perplexity."""
    pairs = zip(results[row], results["base"], strict=True)
    if score == "bleu":
        return [run.bleu - base.bleu for run, base in pairs]
    return [math.log(run.perplexity / base.perplexity) for run, base in pairs]


def points(results: Mapping[str, Sequence[Run]]) -> list[dict[str, Any]]:
    """Return the mean scores of each row, next to those of the paper."""
    return [
        {
            "row": row,
            "perplexity": fmean(run.perplexity for run in runs),
            "bleu": fmean(run.bleu for run in runs),
            "paper_perplexity": ROWS[row].perplexity,
            "paper_bleu": ROWS[row].bleu,
        }
        for row, runs in results.items()
    ]


def drawn(results: Mapping[str, Sequence[Run]]) -> Any:
    """Draw the differences of each row from the base model: of the models here, and of those of the paper."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    base, rows = ROWS["base"], [row for row in results if row != "base"]
    for axes, score, label in zip(panels, ("perplexity", "bleu"), ("log of perplexity", "BLEU"), strict=True):
        paper = {
            "perplexity": [math.log(ROWS[row].perplexity / base.perplexity) for row in rows],
            "bleu": [ROWS[row].bleu - base.bleu for row in rows],
        }
        for number, row in enumerate(rows):
            values = differences(results, row, score)
            axes.plot(values, [number] * len(values), ".", color=BLUE, alpha=0.5)
            axes.plot(fmean(values), number, "|", color=BLUE, markersize=12)
        axes.plot(paper[score], range(len(rows)), "D", color=BROWN, fillstyle="none", markersize=5)
        axes.axvline(0, color="#999999", linewidth=1, zorder=0)
        axes.set(xlabel=f"{label}, difference from base")
    panels[0].set_yticks(range(len(rows)), rows)
    panels[0].invert_yaxis()
    panels[0].plot([], [], "|", color=BLUE, markersize=12, label="in miniature: seeds, mean")
    panels[0].plot([], [], "D", color=BROWN, fillstyle="none", markersize=5, label="paper")
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return figure


if __name__ == "__main__":
    main()
