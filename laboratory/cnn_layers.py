"""What can be read from the layers of a stacked CNN? python laboratory/cnn_layers.py [--help]

The probes are those of layers.py; a layer of kernel size 3 reads one more word on each side than the layer below it.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import torch
from layers import MIN_COUNT, Nouns, first_readable
from models import train, warm_up
from report import arguments, check, publish
from scenes_model import LEARNING_RATE, PAD, WARMUP, Corpus, corpus, masked_loss

from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.architectures.heads import TokenClassifier
from heedful.inspector.capture.recorder import recording

LAYERS, WIDTH, TRAINING, MEASURED, UPDATES = 6, 64, 20_000, 800, 800
CONFIG = ConvolutionalConfig(
    family="encoder", encoder_layers=LAYERS, kernel_size=3, d_model=WIDTH, dropout=0.0, positions="none"
)
COLOURS = {"word": "#b5651d", "previous word": "#c9a227", "role": "#5a8fc8", "question": "#3a7d44"}


def nouns_of(data: Corpus) -> Nouns:
    """Return the nouns of the measured sentences, with their previous words as a further property to probe."""
    nouns = Nouns(data)
    previous = [data.measured[row].words[column - 1].lower() if column else "" for row, column in nouns.places]
    counts = Counter(previous)
    nouns.labels["previous word"] = np.array(previous)
    nouns.usable["previous word"] = np.array([bool(word) and counts[word] >= MIN_COUNT for word in previous])
    return nouns


def build(data: Corpus, seed: int) -> TokenClassifier:
    """Build a convolutional encoder with random weights that predicts words."""
    torch.manual_seed(seed)
    vocabulary = len(data.ids) + 2
    return TokenClassifier(CONFIG, vocabulary, vocabulary).eval()


def trained(data: Corpus, seed: int, updates: int) -> TokenClassifier:
    """Train an encoder to predict masked words."""
    model = build(data, seed)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    warm_up(optimizer, WARMUP)
    train(optimizer, lambda: masked_loss(model, data), updates)
    return model


def states(model: TokenClassifier, nouns: Nouns) -> list[np.ndarray]:
    """Return the embeddings of the nouns, and the outputs of each layer's gated linear units for them, (N, D)."""
    tokens = nouns.data.batch(nouns.data.measured)
    names = ["src.in", *(f"enc.{layer}.hidden" for layer in range(LAYERS))]
    with torch.no_grad(), recording(model, names) as tensors:
        model(tokens, tokens != PAD)
    # Convolutions see each sentence at the end of its row, so words are counted from there.
    rows = [row for row, _ in nouns.places]
    columns = [column - len(nouns.data.measured[row].words) for row, column in nouns.places]
    return [tensors[name][rows, columns].numpy() for name in names]


def main() -> None:
    options = arguments(__doc__, seeds=3)
    data = corpus(*((500, 200) if options.quick else (TRAINING, MEASURED)))
    nouns = nouns_of(data)
    curves: dict[tuple[str, bool], list[list[float]]] = {}  # by property and training: accuracies by layer, per seed
    for seed in range(options.seeds):
        for is_trained in (True, False):
            model = trained(data, seed, 2 if options.quick else UPDATES) if is_trained else build(data, seed)
            layers = states(model, nouns)
            for name in COLOURS:
                curves.setdefault((name, is_trained), []).append([nouns.probe(layer, name) for layer in layers])
                print(seed, is_trained, name, [round(value, 2) for value in curves[name, is_trained][-1]], flush=True)

    figure, axes = plt.subplots(figsize=(7, 3.6))
    for name, colour in COLOURS.items():
        axes.plot(np.mean(curves[name, True], axis=0), color=colour, label=name, marker="o", markersize=4)
        axes.plot(np.mean(curves[name, False], axis=0), color=colour, linestyle=":")
    labels = [f"{layer}\n{2 * layer + 1}" for layer in range(LAYERS + 1)]
    axes.set_xticks(range(LAYERS + 1), labels)
    axes.set(
        xlabel="layer, and the number of words that it reads", ylabel="balanced accuracy of the probe", ylim=(0, 1.03)
    )
    axes.legend(fontsize="small", title="dotted: before training", title_fontsize="x-small")

    def later(name: str, other: str) -> list[int]:
        """How many layers later one property is readable than the other."""
        pairs = zip(curves[name, True], curves[other, True], strict=True)
        return [first_readable(one) - first_readable(two) for one, two in pairs]

    def change(name: str) -> list[float]:
        """The accuracy in the last layer minus that in the first."""
        return [curve[-1] - curve[1] for curve in curves[name, True]]

    gains = [
        max(after) - max(before) for after, before in zip(curves["role", True], curves["role", False], strict=True)
    ]
    predictions = [
        check("later", later("role", "previous word"), least=1, name="role", other="previous word"),
        check("later", later("question", "role"), least=1, name="question", other="role"),
        check("change", change("word"), most=-0.1, name="word"),
        check("change", change("previous word"), most=-0.1, name="previous word"),
        check("change", change("role"), least=0.1, name="role"),
        check("change", change("question"), least=0.1, name="question"),
        check("gain", gains, least=0.1, name="role"),
    ]
    points = {f"{name}, {'after' if on else 'before'} training": curve for (name, on), curve in curves.items()}
    publish("cnn_layers", predictions, figure, options, curves=points)


if __name__ == "__main__":
    main()
