"""Word vectors before and after training: python laboratory/vectors.py [--help]

Skip-gram with the full softmax reads short sentences of a small grammar; beside are the tables of source document 001.
"""

import itertools

import findings
import matplotlib.pyplot as plt
import torch
from findings import Check
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

from heedful.architectures.word2vec.model import Word2Vec
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.inspector.measures.embeddings import principal_components

LOVE = torch.tensor([(-0.1, 0.5, 0.3), (-0.05, 0.45, 0.4)])  # source document 001, section 2.1: before and after
EAT = torch.tensor([(0.4, -0.6, 0.2), (0.45, -0.55, 0.25)])
PEAR = torch.tensor([(-0.3, 0.2, 0.8), (-0.3, 0.25, 0.85)])
PEOPLE = [("man", "woman", "village"), ("king", "queen", "palace"), ("monk", "nun", "abbey"), ("son", "girl", "home")]
SENTENCES = [
    *itertools.product(("I", "you"), ("eat", "consume"), ("apple", "pear", "bread")),
    *itertools.product(("I", "you"), ("read", "study"), ("book", "paper")),
    *[("I", "love", "eat", fruit) for fruit in ("apple", "pear", "bread")],
    *[(who, own, place) for he, she, place in PEOPLE for who, own in ((he, "his"), (she, "her"))],
]
WORDS = sorted({word for sentence in SENTENCES for word in sentence})
SIZE, WINDOW, UPDATES, RATE = 16, 2, 2000, 0.5


def pairs() -> Tensor:
    """Each word with each word at most WINDOW places away in its sentence, as two columns of ids."""
    texts = [[WORDS.index(word) for word in sentence] for sentence in SENTENCES]
    near = [(text, here, there) for text in texts for here, there in itertools.permutations(range(len(text)), 2)]
    return torch.tensor([(text[here], text[there]) for text, here, there in near if abs(here - there) <= WINDOW])


def train(seed: int, updates: int) -> tuple[Tensor, Tensor]:
    """Word vectors before and after so many updates over all pairs; the first are drawn with a deviation of 0.1."""
    torch.manual_seed(seed)
    model = Word2Vec(Word2VecConfig(d_model=SIZE), len(WORDS))
    for table in (model.embedding, model.output):
        torch.nn.init.normal_(table.weight, std=0.1)
    before = model.embedding.weight.detach().clone()
    centres, contexts = pairs().unbind(1)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    for _ in range(updates):
        loss = cross_entropy(model(centres) @ model.output.weight.T, contexts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return before, model.embedding.weight.detach()


def cosine(vectors: Tensor, one: str, other: str) -> float:
    return float(cosine_similarity(vectors[WORDS.index(one)], vectors[WORDS.index(other)], dim=0))


def analogies(vectors: Tensor) -> float:
    """Share of questions such as king - man + woman whose nearest word is queen; the three do not count."""
    unit, right = normalize(vectors, dim=1), []
    for (man, woman, _), (king, queen, _) in itertools.permutations(PEOPLE, 2):
        known = [WORDS.index(word) for word in (king, man, woman)]
        near = unit @ (unit[known[0]] - unit[known[1]] + unit[known[2]])
        near[known] = -torch.inf
        right.append(WORDS[int(near.argmax())] == queen)
    return sum(right) / len(right)


def main() -> None:
    options = findings.arguments(__doc__, seeds=5)
    runs = [train(seed, 20 if options.quick else UPDATES) for seed in range(options.seeds)]
    near = cosine_similarity(LOVE, EAT) - cosine_similarity(LOVE, PEAR)
    apart = (LOVE - PEAR).norm(dim=1)
    checks = [
        Check("printed_nearer", [float(near[1])], least=0),
        Check("printed_farther", [float(apart[1] - apart[0])], least=0),
        Check("nearer", [cosine(v, "love", "eat") - cosine(v, "love", "pear") for _, v in runs], least=0),
        Check("closer", [cosine(v, "eat", "consume") - cosine(u, "eat", "consume") for u, v in runs], least=0),
        Check("apple", [cosine(v, "eat", "consume") - cosine(v, "eat", "apple") for _, v in runs], least=0),
        Check("analogies", [analogies(v) for _, v in runs], least=0.9),
    ]
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.5))
    for panel, title, vectors in zip(panels, ("before training", "after training"), runs[0], strict=True):
        points = principal_components(vectors.numpy()).places
        panel.scatter(*points.T, s=9, color="#5a8fc8")
        for word, point in zip(WORDS, points, strict=True):
            panel.annotate(word, point, fontsize="small")
        panel.margins(0.12)
        panel.set(title=title, xticks=[], yticks=[])
    findings.publish("vectors", checks, figure, options)


if __name__ == "__main__":
    main()
