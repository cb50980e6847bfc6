"""Quality against speed of translators of several shapes: python laboratory/fast_shapes.py --data DATA [--help]

The published tiny shape is trained on the given translations, and each other shape on the translations of these models.
The same command resumes after an interruption; --only names some of the shapes.
"""

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

import matplotlib.pyplot as plt
from captions import bleu, caption_arguments, test_set
from models import BLUE, BROWN
from report import ROOT, check, publish

import heedful
from heedful.cli.distill import distill
from heedful.config.load import load_recipe
from heedful.predictors import Translator

TINY, FAST = "4+4", "8+1"
SHAPES: dict[str, dict[str, int]] = {  # the settings of [model] that differ from the recipe
    TINY: {},
    "2+2": {"encoder_layers": 2, "decoder_layers": 2},
    "6+2": {"encoder_layers": 6, "decoder_layers": 2},
    "4+1": {"decoder_layers": 1},
    "6+1": {"encoder_layers": 6, "decoder_layers": 1},
    FAST: {"encoder_layers": 8, "decoder_layers": 1},
    "12+1": {"encoder_layers": 12, "decoder_layers": 1},
    "8+1, width 96": {"encoder_layers": 8, "decoder_layers": 1, "d_model": 96, "d_ff": 192},
    "12+1, width 64": {"encoder_layers": 12, "decoder_layers": 1, "d_model": 64, "d_ff": 128},
}
SMALL = {"model.d_model": 16, "model.d_ff": 16, "tokenizer.vocab_size": 500, "decode.max_extra": 3}  # with --quick
UPDATES, SHORTLIST, ROUNDS, ALONE = 5000, 50, 5, 50
BEAMS, PRECISIONS = (1, 5), ("float32", "int8")

Search = tuple[str, int, int]  # shape, beam size, shortlist


def main() -> None:
    options = caption_arguments(
        __doc__,
        seeds=3,
        models="fast-shapes",
        updates={"type": int, "default": UPDATES, "help": "updates of each training"},
        only={"nargs": "+", "choices": SHAPES, "help": f"some shapes; without {TINY} and {FAST} nothing is measured"},
    )
    shapes = options.only or list(SHAPES)
    if options.quick:
        shapes, options.updates = [TINY, FAST], 2
    runs = trained(options, shapes)
    if not {TINY, FAST} <= {*shapes}:
        return

    lines, references = test_set(load_recipe(options.work / "distilled").data)
    searches: list[Search] = list(product(shapes, BEAMS, (0, SHORTLIST)))
    seconds, alone = timed(runs, searches, lines, 2 if options.quick else ROUNDS)
    best = {search: min(PRECISIONS, key=lambda precision: median(seconds[search, precision])) for search in searches}
    scores = {
        search: [
            bleu(translator(runs[search[0], seed], best[search], search), lines, references)
            for seed in range(1, options.seeds + 1)
        ]
        for search in searches
    }
    speeds = {search: len(lines) / median(seconds[search, best[search]]) for search in searches}

    reference, fast = (TINY, 5, 0), (FAST, 1, SHORTLIST)

    def ratios(measured: dict[tuple[Search, str], list[float]]) -> list[float]:
        pairs = zip(measured[reference, best[reference]], measured[fast, best[fast]], strict=True)
        return [slow / quick for slow, quick in pairs]

    predictions = [
        check("bleu", [ours - theirs for ours, theirs in zip(scores[fast], scores[reference], strict=True)], least=0),
        check("speed", ratios(seconds), least=4),
        check("alone", ratios(alone), least=3),
    ]
    points = [
        {
            "shape": shape,
            "beam": beam,
            "shortlist": size,
            "precision": best[shape, beam, size],
            "bleu": scores[shape, beam, size],
            "sentences_per_second": speeds[shape, beam, size],
            "milliseconds_alone": 1000 * median(alone[(shape, beam, size), best[shape, beam, size]]),
        }
        for shape, beam, size in searches
    ]
    publish("fast_shapes", predictions, drawn(points), options, points=points, updates=options.updates)


def trained(options: Any, shapes: Sequence[str]) -> dict[tuple[str, int], Path]:
    """Train the shapes with every seed, or resume; return the folders of the runs."""
    runs = {(shape, seed): options.work / f"{shape}-{seed}" for shape in SHAPES for seed in range(1, options.seeds + 1)}
    recipe = ROOT / "recipes/multi30k-en-de"
    teachers = [runs[TINY, seed] for seed in range(1, options.seeds + 1)]
    for seed, folder in enumerate(teachers, 1):
        heedful.train(recipe, folder, options.data, changes(options, TINY, seed))
    students = options.work / "distilled"
    if shapes != [TINY]:
        distill(recipe, list(map(str, teachers)), students, keep_original=True, data=options.data, beam=5)
    for shape, seed in product(shapes, range(1, options.seeds + 1)):
        if shape != TINY:
            heedful.train(students, runs[shape, seed], set=changes(options, shape, seed))
    return runs


def changes(options: Any, shape: str, seed: int) -> dict[str, Any]:
    """Return the settings of a training that differ from the recipe."""
    model = SHAPES[shape]
    values: dict[str, Any] = {f"model.{key}": value for key, value in model.items()}
    values |= {"train.seed": seed, "train.max_updates": options.updates, "train.threads": options.threads}
    values |= {"decode.shortlist": SHORTLIST, "optimizer.warmup": min(400, options.updates // 2)}
    return values | (SMALL if options.quick else {})


def translator(run: Path, precision: Any, search: Search) -> Translator:
    loaded = heedful.load(run, "cpu", precision, as_=Translator, engine="ctranslate2")
    return loaded.with_options(beam=search[1], shortlist=search[2])


Times = dict[tuple[Search, str], list[float]]


def timed(runs: Any, searches: Sequence[Search], lines: list[str], rounds: int) -> tuple[Times, Times]:
    """Time every search in every precision, in turns: seconds for all lines, and for one line alone."""
    models = {(search, x): translator(runs[search[0], 1], x, search) for search in searches for x in PRECISIONS}
    together: Times = {key: [] for key in models}
    alone: Times = {key: [] for key in models}
    for _, (key, model) in product(range(rounds), list(models.items())):
        start = time.perf_counter()
        model.translate(lines)
        together[key].append(time.perf_counter() - start)
        start = time.perf_counter()
        for line in lines[:ALONE]:
            model.translate(line)
        alone[key].append((time.perf_counter() - start) / len(lines[:ALONE]))
    return together, alone


def drawn(points: Sequence[dict[str, Any]]) -> Any:
    """Draw BLEU against sentences a second, and the front: the points than which none is both better and faster."""
    figure, axes = plt.subplots(figsize=(8, 5))
    for point in points:
        x, y = point["sentences_per_second"], fmean(point["bleu"])
        colour, filled = (BLUE if point["beam"] == 1 else BROWN), bool(point["shortlist"])
        axes.scatter(x, y, color=colour, facecolors=colour if filled else "none")
        axes.annotate(point["shape"], (x, y), fontsize=6, xytext=(3, 3), textcoords="offset points")
    front, highest = [], float("-inf")
    for point in sorted(points, key=lambda point: -point["sentences_per_second"]):
        if fmean(point["bleu"]) > highest:
            highest = fmean(point["bleu"])
            front.append((point["sentences_per_second"], highest))
    axes.plot(*zip(*front, strict=True), color="#999999", linewidth=1, zorder=0)
    axes.set(xscale="log", xlabel="sentences/s", ylabel="BLEU (test2016)")
    for label, colour in (("greedy", BLUE), ("beam 5", BROWN)):
        axes.scatter([], [], color=colour, label=f"{label}, shortlist")
        axes.scatter([], [], color=colour, facecolors="none", label=label)
    axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main()
