"""Word vectors before and after training: python laboratory/vectors.py [--help]

Skip-gram with the full softmax reads short sentences of a small grammar.
"""

import itertools

import matplotlib.pyplot as plt
import torch
from models import BLUE, train
from report import arguments, check, publish
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
WIDTH, WINDOW, UPDATES, LEARNING_RATE = 16, 2, 2000, 0.5


def pairs() -> tuple[Tensor, Tensor]:
    """Return the ids of each word, and of each word at most WINDOW positions from it in its sentence."""
    ids = [[WORDS.index(word) for word in sentence] for sentence in SENTENCES]
    positions = [(text, i, j) for text in ids for i, j in itertools.permutations(range(len(text)), 2)]
    centres, contexts = torch.tensor([(text[i], text[j]) for text, i, j in positions if abs(i - j) <= WINDOW]).unbind(1)
    return centres, contexts


def vectors_before_and_after(seed: int, updates: int) -> tuple[Tensor, Tensor]:
    """Train skip-gram on all pairs at once; return the vectors drawn with deviation 0.1, and those after training."""
    torch.manual_seed(seed)
    model = Word2Vec(Word2VecConfig(d_model=WIDTH), len(WORDS))
    for table in (model.embedding, model.output):
        torch.nn.init.normal_(table.weight, std=0.1)
    before = model.embedding.weight.detach().clone()
    centres, contexts = pairs()

    def loss() -> Tensor:
        return cross_entropy(model(centres) @ model.output.weight.T, contexts)

    train(torch.optim.SGD(model.parameters(), LEARNING_RATE), loss, updates)
    return before, model.embedding.weight.detach()


def cosine(vectors: Tensor, first: str, second: str) -> float:
    return float(cosine_similarity(vectors[WORDS.index(first)], vectors[WORDS.index(second)], dim=0))


def analogy_accuracy(vectors: Tensor) -> float:
    """Return the share of questions such as king - man + woman whose nearest other word is queen."""
    unit, correct = normalize(vectors, dim=1), []
    for (man, woman, _), (king, queen, _) in itertools.permutations(PEOPLE, 2):
        question = [WORDS.index(word) for word in (king, man, woman)]
        similarities = unit @ (unit[question[0]] - unit[question[1]] + unit[question[2]])
        similarities[question] = -torch.inf  # the words of the question are not answers
        correct.append(WORDS[int(similarities.argmax())] == queen)
    return sum(correct) / len(correct)


def main() -> None:
    options = arguments(__doc__, seeds=5)
    runs = [vectors_before_and_after(seed, 20 if options.quick else UPDATES) for seed in range(options.seeds)]
    advantages = cosine_similarity(LOVE, EAT) - cosine_similarity(LOVE, PEAR)  # before and after, as printed
    distances = (LOVE - PEAR).norm(dim=1)
    predictions = [
        check("printed_nearer", [float(advantages[1])], least=0),
        check("printed_farther", [float(distances[1] - distances[0])], least=0),
        check("nearer", [cosine(v, "love", "eat") - cosine(v, "love", "pear") for _, v in runs], least=0),
        check("closer", [cosine(v, "eat", "consume") - cosine(u, "eat", "consume") for u, v in runs], least=0),
        check("farther", [cosine(v, "eat", "apple") - cosine(u, "eat", "apple") for u, v in runs], most=0),
        check("apple", [cosine(v, "eat", "consume") - cosine(v, "eat", "apple") for _, v in runs], least=0),
        check("analogies", [analogy_accuracy(v) for _, v in runs], least=0.9),
    ]

    figure, panels = plt.subplots(1, 2, figsize=(9, 4.5))
    for panel, title, vectors in zip(panels, ("before training", "after training"), runs[0], strict=True):
        points = principal_components(vectors.numpy()).places
        panel.scatter(*points.T, s=9, color=BLUE)
        for word, point in zip(WORDS, points, strict=True):
            panel.annotate(word, point, fontsize="small")
        panel.margins(0.12)
        panel.set(title=title, xticks=[], yticks=[])
    publish("vectors", predictions, figure, options)


if __name__ == "__main__":
    main()
