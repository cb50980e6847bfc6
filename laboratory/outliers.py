"""Does layer normalisation damp outliers? python laboratory/outliers.py [--help]

Outliers are measured in models that are trained with and without normalisation, and one is put into their inputs.
"""

from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
from models import train, warm_up
from report import arguments, check, publish
from scenes_model import CONFIG, LEARNING_RATE, MASK, PAD, WARMUP, Corpus, corpus, masked_loss
from torch import Tensor

from heedful.architectures.heads import TokenClassifier
from heedful.inspector.capture.recorder import recording

LAYERS, TRAINING, MEASURED, UPDATES, PARTS = 2, 10_000, 500, 400, 10
FACTOR = 20.0  # of the outlier in the input
VARIANTS = {"pre-norm": "pre", "post-norm": "post", "no normalisation": "none"}
COLOURS = dict(zip(VARIANTS, ("#5a8fc8", "#3a7d44", "#b5651d"), strict=True))


class Probe(NamedTuple):
    """Sentences with one masked word each, and the factor by which the embedding of another word is multiplied."""

    tokens: Tensor  # B T
    masked: Tensor  # B T
    factors: Tensor  # B T


class Measurement(NamedTuple):
    """Outliers of the sublayers' inputs, on average, and the accuracy for masked words without and with an outlier."""

    kurtosis: float
    largest: float
    accuracy: float
    accuracy_with_outlier: float


def probe(data: Corpus) -> Probe:
    """Choose two words of each sentence at random: one is masked, the other becomes an outlier."""
    tokens = data.batch(data.measured)
    torch.manual_seed(0)
    places = torch.rand(tokens.shape).masked_fill(tokens == PAD, -1.0).argsort(1, descending=True)
    masked = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, places[:, :1], value=True)
    factors = torch.ones(tokens.shape).scatter(1, places[:, 1:2], FACTOR)
    return Probe(tokens, masked, factors)


def measured(model: TokenClassifier, norm: str, texts: Probe) -> Measurement:
    """Measure outliers in a model, and the effect of one in its input."""
    real = texts.tokens != PAD

    def accuracy() -> float:
        guesses = model(texts.tokens.masked_fill(texts.masked, MASK), real).argmax(-1)
        return float((guesses == texts.tokens)[texts.masked].float().mean())

    # With pre-norm, a sublayer reads the normalised state.
    place = "norm" if norm == "pre" else "in"
    with torch.no_grad():
        with recording(model, f"enc.*.{place}") as tensors:
            usual = accuracy()
        with recording(model, edits={"src.in": lambda x: x * texts.factors[:, :, None]}):
            disturbed = accuracy()
    kurtoses, deviations = [], []
    for x in tensors.values():
        scores = (x[real] - x[real].mean()) / x[real].std()
        kurtoses.append(float((scores**4).mean()))
        deviations.append(float(scores.abs().max()))
    return Measurement(fmean(kurtoses), fmean(deviations), usual, disturbed)


def run(norm: str, seed: int, updates: int, data: Corpus, texts: Probe) -> list[Measurement]:
    """Train a model to predict masked words; return measurements before, during and after training."""
    torch.manual_seed(seed)
    vocabulary = len(data.ids) + 2
    model = TokenClassifier(replace(CONFIG, encoder_layers=LAYERS, norm=norm), vocabulary, vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    warm_up(optimizer, WARMUP)
    measurements = [measured(model, norm, texts)]
    for _ in range(PARTS):
        train(optimizer, lambda: masked_loss(model, data), updates // PARTS)
        measurements.append(measured(model, norm, texts))
    return measurements


def main() -> None:
    options = arguments(__doc__, seeds=5)
    data = corpus(*((300, 30) if options.quick else (TRAINING, MEASURED)))
    texts = probe(data)
    updates = PARTS if options.quick else UPDATES
    runs: dict[str, list[list[Measurement]]] = {}  # by variant: the measurements of each seed
    for name, norm in VARIANTS.items():
        runs[name] = [run(norm, seed, updates, data, texts) for seed in range(options.seeds)]
        print(name, [run[-1] for run in runs[name]], flush=True)

    figure, panels = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    times = [updates // PARTS * part for part in range(PARTS + 1)]
    for name, colour in COLOURS.items():
        means = torch.tensor(runs[name]).mean(0).T  # of each quantity at each time
        for axes, values in zip(panels, means, strict=False):
            axes.plot(times, values, color=colour, label=name)
        panels[2].plot(times, means[3], color=colour, linestyle=":")
    labels = ("kurtosis", "largest deviation / standard deviation", "accuracy (dotted: with an outlier)")
    for axes, label in zip(panels, labels, strict=True):
        axes.set(xlabel="updates", ylabel=label)
    panels[0].axhline(3, color="#999999", linestyle=":", linewidth=1)  # of a normal distribution
    panels[0].legend(fontsize="small")

    bare, norms = "no normalisation", ("pre-norm", "post-norm")

    def ratios(quantity: str, name: str) -> list[float]:
        """The outliers after training, with a normalisation / without."""
        pairs = zip(runs[name], runs[bare], strict=True)
        return [getattr(one[-1], quantity) / getattr(other[-1], quantity) for one, other in pairs]

    def losses(name: str) -> list[float]:
        """The accuracy that the outlier in the input costs after training."""
        return [run[-1].accuracy - run[-1].accuracy_with_outlier for run in runs[name]]

    predictions = [
        check(key, ratios(key, name), most=0.8, name=name) for key in ("kurtosis", "largest") for name in norms
    ]
    predictions += [check("lost", losses(name), most=0.05, name=name) for name in norms]
    for name in norms:
        saved = [one - other for one, other in zip(losses(bare), losses(name), strict=True)]
        predictions.append(check("saved", saved, least=0.1, name=name))
    curves = {name: torch.tensor(each).mean(0).tolist() for name, each in runs.items()}
    publish("outliers", predictions, figure, options, measures=Measurement._fields, curves=curves)


if __name__ == "__main__":
    main()
