"""What does a translator lose without one of its decoder layers? python laboratory/decoder_layers.py [--help]

The translators are trained on sentences of `heedful scenes`, each of which has exactly one translation.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from models import BLUE, BROWN
from report import ROOT, arguments, check, publish
from torch import nn

import heedful
from heedful.corpora.scenes import ScenePair, split
from heedful.corpora.scenes.corpus import corpus_files
from heedful.predictors import Translator

LAYERS, TRAINING, TEST, UPDATES = 6, 20_000, 500, 600
LOW, TOP = (0, 1), (LAYERS - 2, LAYERS - 1)
ABSENT: list[tuple[int, ...]] = [(), *((layer,) for layer in range(LAYERS)), LOW, TOP]
SETTINGS: dict[str, Any] = {
    "model.d_model": 64,
    "model.d_ff": 128,
    "model.heads": 4,
    "model.encoder_layers": 2,
    "model.decoder_layers": LAYERS,
    "train.precision": "float32",
}
SMALL = {"model.d_model": 16, "model.d_ff": 16, "decode.max_extra": 3}  # with --quick

Results = dict[tuple[int, ...], list["Quality"]]  # of each seed, by the layers that are left out


class Quality(NamedTuple):
    """Quality of translations: the share that is correct, the share of known word pairs, and the relative length.

    A pair of adjacent words is known if it occurs in the target sentences of the training data.
    """

    correct: float
    known_pairs: float
    length: float


def main() -> None:
    options = arguments(__doc__, seeds=3, models="decoder-layers")
    sizes = (300, 20) if options.quick else (TRAINING, TEST)
    parts = split("en-de", sizes[0], TEST // 5, sizes[1], seed=1)
    known = {pair for example in parts["train"] for pair in pairwise(example.target.text.split())}
    results: Results = {absent: [] for absent in ABSENT}
    for seed in range(1, options.seeds + 1):
        translator = trained(parts, seed, options)
        for absent in ABSENT:
            with without(translator, absent):
                results[absent].append(measured(translator, parts["test"], known))
            print(seed, absent, results[absent][-1], flush=True)

    def differences(one: tuple[int, ...], other: tuple[int, ...], score: str) -> list[float]:
        pairs = zip(results[one], results[other], strict=True)
        return [getattr(a, score) - getattr(b, score) for a, b in pairs]

    predictions = [
        check("complete", [quality.correct for quality in results[()]], least=0.9),
        check("fluency", differences(LOW, TOP, "known_pairs"), most=0),
        check("pairs", [quality.known_pairs for quality in results[LOW]], least=0.5),
        check("correct", [quality.correct for quality in results[LOW]], most=0.1),
        check("consistency", differences(TOP, (), "correct"), most=-0.1),
        check("pairs_kept", differences(TOP, (), "known_pairs"), least=-0.1),
    ]
    publish("decoder_layers", predictions, drawn(results), options, points=points(results))


def trained(parts: dict[str, list[ScenePair]], seed: int, options: Any) -> Translator:
    """Train a translator, or load the one that is already trained."""
    data = options.work / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, content in corpus_files("en-de", parts).items():
        (data / name).write_text(content, encoding="utf-8")
    updates = 2 if options.quick else UPDATES
    changes = SETTINGS | (SMALL if options.quick else {}) | {"train.seed": seed, "train.max_updates": updates}
    changes |= {"train.threads": options.threads, "optimizer.warmup": min(100, updates // 2)}
    run = heedful.train(ROOT / "recipes/scenes-en-de", options.work / str(seed), data, changes).folder
    return heedful.load(run, "cpu", as_=Translator).with_options(beam=1)


@contextmanager
def without(translator: Translator, layers: Sequence[int]) -> Iterator[None]:
    """Remove decoder layers: with pre-norm, the others read what the residual connections pass on."""
    decoder: Any = translator.model.get_submodule("decoder")
    blocks = decoder.blocks
    decoder.blocks = nn.ModuleList(block for number, block in enumerate(blocks) if number not in layers)
    try:
        yield
    finally:
        decoder.blocks = blocks


def measured(translator: Translator, examples: Sequence[ScenePair], known: set[tuple[str, str]]) -> Quality:
    """Translate the examples and measure the translations."""
    outputs = translator.translate([example.source.text for example in examples])
    references = [example.target.text for example in examples]
    pairs = [pair in known for output in outputs for pair in pairwise(output.split())]
    return Quality(
        fmean(output == reference for output, reference in zip(outputs, references, strict=True)),
        fmean(pairs) if pairs else 0.0,
        len(" ".join(outputs).split()) / len(" ".join(references).split()),
    )


def points(results: Results) -> list[dict[str, Any]]:
    return [
        {"absent": [layer + 1 for layer in absent], **{name: fmean(each) for name, each in columns(qualities)}}
        for absent, qualities in results.items()
    ]


def columns(qualities: Sequence[Quality]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield each score with its values for all seeds."""
    return zip(Quality._fields, zip(*qualities, strict=True), strict=True)


def drawn(results: Results) -> Any:
    """Draw the scores of translators without some of their layers."""
    figure, panels = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    names = ["all", *(str(layer + 1) for layer in range(LAYERS)), "1, 2", f"{LAYERS - 1}, {LAYERS}"]
    colours = [BLUE, *[BROWN] * (len(ABSENT) - 1)]
    labels = ("correct translations", "known word pairs", "length / reference")
    for axes, (score, label) in zip(panels, zip(Quality._fields, labels, strict=True), strict=True):
        values = [[getattr(quality, score) for quality in results[absent]] for absent in ABSENT]
        axes.bar(names, list(map(fmean, values)), color=colours, alpha=0.6)
        for position, each in enumerate(values):
            axes.plot([position] * len(each), each, ".", color="#333333", markersize=3)
        axes.set(xlabel="decoder layers left out", ylabel=label)
        axes.tick_params(axis="x", labelsize="small")
    return figure


if __name__ == "__main__":
    main()
