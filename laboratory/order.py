"""Does a model see the order of words? python laboratory/order.py [--help]

Each text has two marked words among others; the class says which of them comes first.
"""

from dataclasses import replace

import findings
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from findings import Check

from heedful.architectures.bag_of_words.settings import BagOfWordsConfig
from heedful.architectures.heads import TextClassifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.architectures.text_cnn.settings import TextCNNConfig
from heedful.config.schema import ModelConfig

WIDTH, WORDS, LENGTH, UPDATES, ROWS = 32, 20, 7, 600, 64
TRANSFORMER = ModelConfig(
    family="encoder", d_model=WIDTH, d_ff=64, heads=4, encoder_layers=2, dropout=0.0, norm="pre", pooling="mean"
)
BLIND = ("bag of words", "Transformer without positions")  # to the order of words
MODELS = {
    "bag of words": BagOfWordsConfig(d_model=WIDTH, dropout=0.0, pooler="dense"),
    "text CNN": TextCNNConfig(d_model=WIDTH, filters=32, kernel_sizes=(3, 4, 5), dropout=0.0),
    "RNN": RecurrentConfig(family="encoder", cell="elman", d_model=WIDTH, dropout=0.0),
    "LSTM": RecurrentConfig(family="encoder", cell="lstm", d_model=WIDTH, dropout=0.0),
    "Transformer": replace(TRANSFORMER, positions="rotary"),
    "Transformer without positions": replace(TRANSFORMER, positions="none"),
}


def texts(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids, and the class: 1 if word 0 comes before word 1. The other words are drawn at random."""
    tokens = torch.randint(2, WORDS, (count, LENGTH))
    places = torch.rand(count, LENGTH).argsort(1)[:, :2]
    tokens.scatter_(1, places, torch.tensor([[0, 1]]).expand(count, 2))
    return tokens, (places[:, 0] < places[:, 1]).long()


def logits(model: TextClassifier, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens, torch.ones_like(tokens, dtype=torch.bool))


def learn(name: str, seed: int, updates: int) -> tuple[float, float]:
    """Train a model; return its accuracy on new texts, and how far shuffling the words of a text moves its logits."""
    torch.manual_seed(seed)
    model = TextClassifier(MODELS[name], WORDS, 2)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(updates):
        tokens, classes = texts(ROWS)
        loss = F.cross_entropy(logits(model, tokens), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tokens, classes = texts(1000)
    with torch.no_grad():
        said, shuffled = logits(model.eval(), tokens), logits(model, tokens[:, torch.randperm(LENGTH)])
    return float((said.argmax(1) == classes).float().mean()), float((said - shuffled).abs().mean())


def main() -> None:
    options = findings.arguments(__doc__, seeds=5)
    updates = 3 if options.quick else UPDATES
    found = {name: [learn(name, seed, updates) for seed in range(options.seeds)] for name in MODELS}
    figure, axes = plt.subplots(figsize=(7, 3))
    means = [sum(accuracy for accuracy, _ in runs) / len(runs) for runs in found.values()]
    axes.barh(list(found), means, color=["#b5651d" if name in BLIND else "#5a8fc8" for name in found])
    axes.axvline(0.5, color="#999999", linestyle=":", linewidth=1)
    axes.set(xlabel="accuracy: which of two words comes first", xlim=(0, 1))
    axes.invert_yaxis()
    checks = []
    for name, runs in found.items():
        accuracies, moved = ([run[place] for run in runs] for place in (0, 1))
        if name in BLIND:
            checks.append(Check("accuracy", accuracies, most=0.55, case={"name": name}))
            checks.append(Check("moved", moved, most=1e-4, case={"name": name}))
        else:
            checks.append(Check("accuracy", accuracies, least=0.95, case={"name": name}))
    findings.publish("order", checks, figure, options)


if __name__ == "__main__":
    main()
