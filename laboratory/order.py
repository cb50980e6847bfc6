"""Does a model see the order of words? python laboratory/order.py [--help]

Each text has two marked words; its class says which of them comes first.
"""

from dataclasses import replace
from statistics import fmean

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import BLUE, BROWN, train
from report import arguments, check, publish
from torch import Tensor

from heedful.architectures.bag_of_words.settings import BagOfWordsConfig
from heedful.architectures.heads import TextClassifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.architectures.text_cnn.settings import TextCNNConfig
from heedful.config.schema import ModelConfig

WIDTH, VOCABULARY, LENGTH, UPDATES, ROWS, TEST_ROWS = 32, 20, 7, 600, 64, 1000
TRANSFORMER = ModelConfig(
    family="encoder", d_model=WIDTH, d_ff=64, heads=4, encoder_layers=2, dropout=0.0, norm="pre", pooling="mean"
)
MODELS = {
    "bag of words": BagOfWordsConfig(d_model=WIDTH, dropout=0.0, pooler="dense"),
    "text CNN": TextCNNConfig(d_model=WIDTH, filters=32, kernel_sizes=(3, 4, 5), dropout=0.0),
    "RNN": RecurrentConfig(family="encoder", cell="elman", d_model=WIDTH, dropout=0.0),
    "LSTM": RecurrentConfig(family="encoder", cell="lstm", d_model=WIDTH, dropout=0.0),
    "Transformer": replace(TRANSFORMER, positions="rotary"),
    "Transformer without positions": replace(TRANSFORMER, positions="none"),
}
INVARIANT = ("bag of words", "Transformer without positions")  # to the order of words


def texts(count: int) -> tuple[Tensor, Tensor]:
    """Draw random words with words 0 and 1 among them, and the classes: 1 if word 0 comes before word 1."""
    tokens = torch.randint(2, VOCABULARY, (count, LENGTH))
    positions = torch.rand(count, LENGTH).argsort(1)[:, :2]
    tokens.scatter_(1, positions, torch.tensor([[0, 1]]).expand(count, 2))
    return tokens, (positions[:, 0] < positions[:, 1]).long()


def logits(model: TextClassifier, tokens: Tensor) -> Tensor:
    """Compute the logits of texts without padding."""
    return model(tokens, torch.ones_like(tokens, dtype=torch.bool))


def accuracy_and_change(name: str, seed: int, updates: int) -> tuple[float, float]:
    """Train a model; return its accuracy on new texts, and the mean change of its logits when words are shuffled."""
    torch.manual_seed(seed)
    model = TextClassifier(MODELS[name], VOCABULARY, 2)

    def loss() -> Tensor:
        tokens, classes = texts(ROWS)
        return F.cross_entropy(logits(model, tokens), classes)

    train(torch.optim.Adam(model.parameters(), 3e-3), loss, updates)
    model.eval()
    tokens, classes = texts(TEST_ROWS)
    with torch.no_grad():
        original, shuffled = logits(model, tokens), logits(model, tokens[:, torch.randperm(LENGTH)])
    return float((original.argmax(1) == classes).float().mean()), float((original - shuffled).abs().mean())


def main() -> None:
    options = arguments(__doc__, seeds=5)
    updates = 3 if options.quick else UPDATES
    accuracies: dict[str, list[float]] = {}
    changes: dict[str, list[float]] = {}
    for name in MODELS:
        runs = [accuracy_and_change(name, seed, updates) for seed in range(options.seeds)]
        accuracies[name], changes[name] = map(list, zip(*runs, strict=True))

    figure, axes = plt.subplots(figsize=(7, 3))
    colours = [BROWN if name in INVARIANT else BLUE for name in MODELS]
    axes.barh(list(MODELS), list(map(fmean, accuracies.values())), color=colours)
    axes.axvline(0.5, color="#999999", linestyle=":", linewidth=1)
    axes.set(xlabel="accuracy: which of two words comes first", xlim=(0, 1))
    axes.invert_yaxis()

    predictions = []
    for name in MODELS:
        if name in INVARIANT:
            predictions.append(check("accuracy", accuracies[name], most=0.55, name=name))
            predictions.append(check("change", changes[name], most=1e-4, name=name))
        else:
            predictions.append(check("accuracy", accuracies[name], least=0.95, name=name))
    publish("order", predictions, figure, options)


if __name__ == "__main__":
    main()
