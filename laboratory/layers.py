"""What can be read from each layer of a small BERT? python laboratory/layers.py [--help]

A probe is a linear classifier of hidden states (Alain & Bengio 2016; Tenney et al. 2019).
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import torch
from models import BLUE, BROWN
from report import arguments, check, publish
from scenes_model import LAYERS, Corpus, build, corpus, states_and_attention, trained
from sklearn.linear_model import LogisticRegression

from heedful.architectures.transformer.masked_models import MaskedLanguageModel

TRAINING, MEASURED, UPDATES = 20_000, 1_000, 3_000
PROBED_SENTENCES = 0.7  # share of the measured sentences on which the probes are trained
NEIGHBOURS = 10
MIN_COUNT = 8  # of a word whose identity is probed
ROLES = ("subject", "object", "place", "agent", "recipient")  # of the nouns that are probed
PRONOUNS = {"he", "her", "him", "i", "it", "me", "she", "them", "they", "us", "we", "what", "who", "you"}
REACHED = 0.95  # share of the best accuracy of a probe at which it counts as readable
PROBES = {"word": BROWN, "role": BLUE, "question": "#3a7d44"}


class Nouns:
    """All nouns in the measured sentences: their labels by probe, and their states in each layer of a model."""

    def __init__(self, data: Corpus) -> None:
        self.data = data
        self.places = [
            (row, column)
            for row, sentence in enumerate(data.measured)
            for column, (word, role) in enumerate(zip(sentence.words, sentence.roles, strict=True))
            if role in ROLES and word.lower() not in PRONOUNS
        ]
        self.sentences = np.array([row for row, _ in self.places])
        words = [data.measured[row].words[column].lower() for row, column in self.places]
        counts = Counter(words)
        self.labels = {
            "word": np.array(words),
            "role": np.array([data.measured[row].roles[column] for row, column in self.places]),
            "question": np.array([data.measured[row].words[-1] == "?" for row, _ in self.places]),
        }
        everywhere = np.ones(len(words), bool)
        self.usable = dict.fromkeys(PROBES, everywhere) | {
            "word": np.array([counts[word] >= MIN_COUNT for word in words])
        }

    def states(self, model: MaskedLanguageModel) -> list[np.ndarray]:
        """Return the states of the nouns before the first block and after each block, (N, D)."""
        states, _ = states_and_attention(model, self.data.batch(self.data.measured))
        rows, columns = torch.tensor(self.places).T
        return [layer[rows, columns].numpy() for layer in states]

    def probe(self, states: np.ndarray, name: str) -> float:
        """Train a linear probe on some of the sentences; return its balanced accuracy on the others."""
        is_training = self.sentences < PROBED_SENTENCES * len(self.data.measured)
        train, test = is_training & self.usable[name], ~is_training & self.usable[name]
        scaled = (states - states[train].mean(0)) / states[train].std(0)
        classifier = LogisticRegression(C=0.3, max_iter=500, class_weight="balanced")
        classifier.fit(scaled[train], self.labels[name][train])
        known = test & np.isin(self.labels[name], classifier.classes_)
        labels, predictions = self.labels[name][known], classifier.predict(scaled[known])
        return float(np.mean([(predictions[labels == label] == label).mean() for label in np.unique(labels)]))

    def alike(self, states: np.ndarray, name: str) -> float:
        """Return the share of the nearest neighbours in other sentences that have the same label."""
        unit = states / np.linalg.norm(states, axis=1, keepdims=True)
        similarities = unit @ unit.T
        similarities[self.sentences[:, None] == self.sentences] = -2.0
        nearest = np.argsort(-similarities, axis=1)[:, :NEIGHBOURS]
        return float((self.labels[name][nearest] == self.labels[name][:, None]).mean())


def first_readable(accuracies: list[float]) -> int:
    """Return the first layer from which a probe reads almost as much as from the best layer."""
    return next(layer for layer, value in enumerate(accuracies) if value >= REACHED * max(accuracies))


def main() -> None:
    options = arguments(__doc__, seeds=3)
    data = corpus(*((500, 200) if options.quick else (TRAINING, MEASURED)))
    nouns = Nouns(data)
    curves: dict[tuple[str, bool], list[list[float]]] = {}  # by measure and training: a curve over the layers per seed
    for seed in range(options.seeds):
        for is_trained in (True, False):
            model = trained(data, seed, 2 if options.quick else UPDATES) if is_trained else build(data, seed)
            layers = nouns.states(model)
            for name in PROBES:
                curves.setdefault((name, is_trained), []).append([nouns.probe(states, name) for states in layers])
            for name in ("word", "role"):
                values = [nouns.alike(states, name) for states in layers]
                curves.setdefault((f"same {name}", is_trained), []).append(values)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True)
    for name, colour in PROBES.items():
        for axes, measure in ((left, name), (right, f"same {name}")):
            for is_trained in (True, False) if (measure, True) in curves else ():
                style = {"linestyle": "-", "label": measure} if is_trained else {"linestyle": ":"}
                axes.plot(np.mean(curves[measure, is_trained], axis=0), color=colour, **style)
    left.set(xlabel="layer", ylabel="balanced accuracy of the probe", xticks=range(LAYERS + 1), ylim=(0, 1.03))
    right.set(xlabel="layer", ylabel="share of the nearest neighbours", ylim=(0, 1.03))
    for axes in (left, right):
        axes.legend(fontsize="small", title="dotted: before training", title_fontsize="x-small")
    figure.tight_layout()

    def first(name: str) -> list[int]:
        return [first_readable(curve) for curve in curves[name, True]]

    def change(name: str) -> list[float]:
        """The value in the last layer minus the value before the first."""
        return [curve[-1] - curve[0] for curve in curves[name, True]]

    def gain(name: str) -> list[float]:
        """The best accuracy of a probe after training minus the best before training."""
        return [max(after) - max(before) for after, before in zip(curves[name, True], curves[name, False], strict=True)]

    predictions = [
        check("later", [role - word for role, word in zip(first("role"), first("word"), strict=True)], least=1),
        check("global", [whole - role for whole, role in zip(first("question"), first("role"), strict=True)], least=1),
        check("gain", gain("role"), least=0.1, name="role"),
        check("change", change("same word"), most=-0.1, name="same word"),
        check("change", change("same role"), least=0.1, name="same role"),
    ]
    publish("layers", predictions, figure, options, curves={f"{name}, {on}": c for (name, on), c in curves.items()})


if __name__ == "__main__":
    main()
