"""One word in many contexts: python laboratory/contexts.py [--help]

"bank" stands in sentences about money and in sentences about rivers; models learn the words that were left out of them.
"""

import findings
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from findings import Check
from torch import Tensor

from heedful.architectures.heads import TokenClassifier
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.architectures.word2vec.model import Word2Vec
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.schema import ModelConfig, TextModelConfig
from heedful.inspector.measures.embeddings import principal_components

BANK, LEFT_OUT, TOPIC, LENGTH = 0, 1, 10, 9  # ids of two words; words of a topic; words of a sentence
WORDS, WIDTH, UPDATES, ROWS, COUNT = 2 + 2 * TOPIC, 32, 600, 64, 200
MODELS: dict[str, TextModelConfig] = {
    "LSTM": RecurrentConfig(family="encoder", cell="lstm", d_model=WIDTH, dropout=0.0),
    "Transformer": ModelConfig(
        family="encoder", d_model=WIDTH, d_ff=64, heads=4, encoder_layers=2, dropout=0.0, norm="pre", positions="rotary"
    ),
}


def sentences(count: int) -> tuple[Tensor, Tensor]:
    """Sentences of words of one of two topics, each with "bank" at a random place, and the topics."""
    topics = torch.randint(0, 2, (count,))
    words = 2 + topics[:, None] * TOPIC + torch.randint(0, TOPIC, (count, LENGTH))
    return words.scatter(1, torch.randint(0, LENGTH, (count, 1)), BANK), topics


def contextual(config: TextModelConfig, updates: int) -> tuple[Tensor, Tensor]:
    """Train a model on words left out, and return its states of "bank" in new sentences, and their topics."""
    model = TokenClassifier(config, WORDS, WORDS)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(updates):
        words, _ = sentences(ROWS)
        out = torch.rand(words.shape) < 0.15
        read = words.masked_fill(out, LEFT_OUT)
        whole = torch.ones_like(out)
        loss = F.cross_entropy(model(read, whole, torch.zeros_like(read))[out], words[out])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    words, topics = sentences(COUNT)
    with torch.no_grad():
        states = model.eval().backbone(words, torch.ones_like(words, dtype=torch.bool), torch.zeros_like(words))
    return states[words == BANK], topics


def static(updates: int) -> tuple[Tensor, Tensor]:
    """Train skip-gram on neighbours, and return the vector of "bank" in new sentences, and their topics."""
    model = Word2Vec(Word2VecConfig(d_model=WIDTH), WORDS)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    for _ in range(updates):
        words, _ = sentences(ROWS)
        loss = F.cross_entropy(model(words[:, :-1].flatten()) @ model.output.weight.T, words[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    words, topics = sentences(COUNT)
    with torch.no_grad():
        return model(words)[words == BANK], topics


def told(vectors: Tensor, topics: Tensor) -> float:
    """Share of the second half whose topic is that of the nearer mean vector of the first half."""
    half = len(vectors) // 2
    means = torch.stack([vectors[:half][topics[:half] == topic].mean(0) for topic in (0, 1)])
    return float((torch.cdist(vectors[half:], means).argmin(1) == topics[half:]).float().mean())


def main() -> None:
    options = findings.arguments(__doc__, seeds=5)
    updates = 3 if options.quick else UPDATES
    runs: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in ("word2vec", *MODELS)}
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        runs["word2vec"].append(static(updates))
        for name, config in MODELS.items():
            runs[name].append(contextual(config, updates))
    figure, panels = plt.subplots(1, len(runs), figsize=(10, 3.5))
    for panel, (name, found) in zip(panels, runs.items(), strict=True):
        vectors, topics = found[0]
        points = principal_components(vectors.numpy()).places
        panel.scatter(*points.T, s=9, c=["#5a8fc8" if topic else "#b5651d" for topic in topics])
        panel.set(title=name, xticks=[], yticks=[])
    checks = [Check("told", [told(*run) for run in runs["word2vec"]], most=0.6, case={"name": "word2vec"})]
    checks += [Check("told", [told(*run) for run in runs[name]], least=0.95, case={"name": name}) for name in MODELS]
    findings.publish("contexts", checks, figure, options)


if __name__ == "__main__":
    main()
