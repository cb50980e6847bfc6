"""Recurrent translators with and without attention: python laboratory/without_attention.py [--help]

The translators are trained on sentences of `heedful scenes`, each of which has exactly one translation.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
from models import COLOURS
from report import Prediction, arguments, check, publish

import heedful
from heedful.corpora.scenes import ScenePair, split
from heedful.corpora.scenes.corpus import corpus_files
from heedful.predictors import Translator

TRAINING, TEST, UPDATES = 20_000, 1_000, 1_500
CELLS = {"gru": "GRU", "lstm": "LSTM"}
ATTENTION = {"none": "without attention", "general": "with attention"}
LENGTHS = {"3-6": range(3, 7), "7-9": range(7, 10), "10-12": range(10, 13), "13+": range(13, 100)}
SHORT, *_, LONG = LENGTHS
RECIPE: dict[str, Any] = {
    "name": "without-attention",
    "data": {
        "train": [{"source": "train.en", "target": "train.de"}],
        "valid": {"source": "valid.en", "target": "valid.de"},
        "source_language": "en",
        "target_language": "de",
    },
    "tokenizer": {"kind": "word", "vocab_size": 4000, "byte_fallback": False},
    "model": {"architecture": "recurrent", "d_model": 64, "dropout": 0.0},
    "optimizer": {"lr": 5e-3, "schedule": "linear", "warmup": 50, "clip_norm": 1.0},
    "train": {"batch_tokens": 1024, "validate_every": UPDATES, "save_every": UPDATES, "precision": "float32"},
}
SMALL = {"model.d_model": 16, "optimizer.warmup": 1, "decode.max_extra": 3}  # with --quick

Curves = dict[tuple[str, str], list[list[float]]]  # by cell and attention: for each seed, the accuracy at each length


def main() -> None:
    options = arguments(__doc__, seeds=3, models="without-attention")
    sizes = (300, 100) if options.quick else (TRAINING, TEST)
    parts = split("en-de", sizes[0], TEST // 5, sizes[1], seed=1)
    data = options.work / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, content in corpus_files("en-de", parts).items():
        (data / name).write_text(content, encoding="utf-8")

    curves: Curves = {(cell, attention): [] for cell in CELLS for attention in ATTENTION}
    for seed in range(1, options.seeds + 1):
        for cell, attention in curves:
            translator = trained(cell, attention, seed, data, options)
            curves[cell, attention].append(accuracies(translator, parts["test"]))
            print(seed, cell, attention, [round(value, 3) for value in curves[cell, attention][-1]], flush=True)
    publish("without_attention", predictions(curves), drawn(curves), options, points=points(curves))


def trained(cell: str, attention: str, seed: int, data: Path, options: Any) -> Translator:
    """Train a translator, or load the one that is already trained."""
    changes = {"model.cell": cell, "model.attention": attention, "train.seed": seed, "train.threads": options.threads}
    changes |= {"train.max_updates": 2 if options.quick else UPDATES} | (SMALL if options.quick else {})
    run = heedful.train(RECIPE, options.work / f"{cell}-{attention}-{seed}", data, changes).folder
    return heedful.load(run, "cpu", as_=Translator).with_options(beam=1)


def accuracies(translator: Translator, examples: Sequence[ScenePair]) -> list[float]:
    """Return the share of correct translations among the examples of each length."""
    outputs = translator.translate([example.source.text for example in examples])
    correct = [output == example.target.text for output, example in zip(outputs, examples, strict=True)]
    lengths = [len(example.source.text.split()) for example in examples]
    return [
        fmean(right for right, length in zip(correct, lengths, strict=True) if length in group)
        for group in LENGTHS.values()
    ]


def predictions(curves: Curves) -> list[Prediction]:
    """Check for each cell that attention helps, and that long sentences lose less with it."""
    checks = []
    for cell, name in CELLS.items():
        without, attending = curves[cell, "none"], curves[cell, "general"]
        pairs = list(zip(attending, without, strict=True))
        checks += [
            check("attending", [curve[0] for curve in attending], least=0.5, name=name, length=SHORT),
            check("gain", [high[0] - low[0] for high, low in pairs], least=0.1, name=name, length=SHORT),
            check("gain", [high[-1] - low[-1] for high, low in pairs], least=0.1, name=name, length=LONG),
            check("kept", [kept(high) - kept(low) for high, low in pairs], least=0, name=name),
        ]
    return checks


def kept(curve: Sequence[float]) -> float:
    """Return the accuracy for long sentences as a share of that for short ones."""
    return curve[-1] / curve[0] if curve[0] else 0.0


def points(curves: Curves) -> list[dict[str, Any]]:
    means = {key: map(fmean, zip(*each, strict=True)) for key, each in curves.items()}
    return [
        {"cell": cell, "attention": attention, "correct": dict(zip(LENGTHS, each, strict=True))}
        for (cell, attention), each in means.items()
    ]


def drawn(curves: Curves) -> Any:
    """Draw the share of correct translations over the length of the source."""
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for (cell, attention), each in curves.items():
        means, colour = list(map(fmean, zip(*each, strict=True))), COLOURS[CELLS[cell]]
        line, label = "--" if attention == "none" else "-", f"{CELLS[cell]} {ATTENTION[attention]}"
        axes.plot(list(LENGTHS), means, line, marker="o", label=label, color=colour)
        for curve in each:
            axes.plot(list(LENGTHS), curve, ".", color=colour, markersize=3, alpha=0.6)
    axes.set(xlabel="words of the source", ylabel="correct translations", ylim=(-0.03, 1.03))
    axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main()
