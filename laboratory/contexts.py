"""One word in many contexts: python laboratory/contexts.py [--help]

"bank" is in sentences about money and in sentences about rivers; the models learn to predict words from their context.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import BLUE, BROWN, train
from report import arguments, check, publish
from torch import Tensor

from heedful.architectures.heads import TokenClassifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.architectures.word2vec.model import Word2Vec
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.schema import ModelConfig, TextModelConfig
from heedful.inspector.measures.embeddings import principal_components

BANK, MASK, TOPIC_WORDS, LENGTH = 0, 1, 10, 9  # two ids; words of a topic; words of a sentence
VOCABULARY, WIDTH, UPDATES, ROWS, TEST_ROWS = 2 + 2 * TOPIC_WORDS, 32, 600, 64, 200
CONTEXTUAL: dict[str, TextModelConfig] = {
    "LSTM": RecurrentConfig(family="encoder", cell="lstm", d_model=WIDTH, dropout=0.0),
    "Transformer": ModelConfig(
        family="encoder", d_model=WIDTH, d_ff=64, heads=4, encoder_layers=2, dropout=0.0, norm="pre", positions="rotary"
    ),
}


def sentences(count: int) -> tuple[Tensor, Tensor]:
    """Draw sentences, each with words of one of two topics and "bank" at a random position, and their topics."""
    topics = torch.randint(0, 2, (count,))
    words = 2 + topics[:, None] * TOPIC_WORDS + torch.randint(0, TOPIC_WORDS, (count, LENGTH))
    return words.scatter(1, torch.randint(0, LENGTH, (count, 1)), BANK), topics


def contextual_vectors(config: TextModelConfig, updates: int) -> tuple[Tensor, Tensor]:
    """Train a masked language model; return its states of "bank" in new sentences, and their topics."""
    model = TokenClassifier(config, VOCABULARY, VOCABULARY)

    def loss() -> Tensor:
        words, _ = sentences(ROWS)
        masked = torch.rand(words.shape) < 0.15
        inputs = words.masked_fill(masked, MASK)
        return F.cross_entropy(model(inputs, torch.ones_like(masked), torch.zeros_like(words))[masked], words[masked])

    train(torch.optim.Adam(model.parameters(), 3e-3), loss, updates)
    words, topics = sentences(TEST_ROWS)
    with torch.no_grad():
        states = model.eval().backbone(words, torch.ones_like(words, dtype=torch.bool), torch.zeros_like(words))
    return states[words == BANK], topics


def static_vectors(updates: int) -> tuple[Tensor, Tensor]:
    """Train skip-gram on neighbouring words; return the vector of "bank" in new sentences, and their topics."""
    model = Word2Vec(Word2VecConfig(d_model=WIDTH), VOCABULARY)

    def loss() -> Tensor:
        words, _ = sentences(ROWS)
        return F.cross_entropy(model(words[:, :-1].flatten()) @ model.output.weight.T, words[:, 1:].flatten())

    train(torch.optim.SGD(model.parameters(), 1.0), loss, updates)
    words, topics = sentences(TEST_ROWS)
    with torch.no_grad():
        return model(words)[words == BANK], topics


def topic_accuracy(vectors: Tensor, topics: Tensor) -> float:
    """Classify the second half by the nearer of the two mean vectors of the first half; return the accuracy."""
    half = len(vectors) // 2
    means = torch.stack([vectors[:half][topics[:half] == topic].mean(0) for topic in (0, 1)])
    return float((torch.cdist(vectors[half:], means).argmin(1) == topics[half:]).float().mean())


def main() -> None:
    options = arguments(__doc__, seeds=5)
    updates = 3 if options.quick else UPDATES
    runs: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in ("word2vec", *CONTEXTUAL)}
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        runs["word2vec"].append(static_vectors(updates))
        for name, config in CONTEXTUAL.items():
            runs[name].append(contextual_vectors(config, updates))

    figure, panels = plt.subplots(1, len(runs), figsize=(10, 3.5))
    for panel, (name, seeds) in zip(panels, runs.items(), strict=True):
        vectors, topics = seeds[0]
        points = principal_components(vectors.numpy()).places
        panel.scatter(*points.T, s=9, c=[BLUE if topic else BROWN for topic in topics])
        panel.set(title=name, xticks=[], yticks=[])

    accuracies = {name: [topic_accuracy(*run) for run in seeds] for name, seeds in runs.items()}
    predictions = [check("topic", accuracies["word2vec"], most=0.6, name="word2vec")]
    predictions += [check("topic", accuracies[name], least=0.95, name=name) for name in CONTEXTUAL]
    publish("contexts", predictions, figure, options)


if __name__ == "__main__":
    main()
