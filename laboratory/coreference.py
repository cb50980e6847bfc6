"""Does a small BERT find out whom "he" means, also far away? python laboratory/coreference.py [--help]

The grammar of `heedful stories` knows what each pronoun stands for. Heads and states of a model that has only learned
to predict masked words are compared with rules, as in Clark et al. (2019, section 4.3).
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from models import BLUE, BROWN
from report import arguments, check, publish
from scenes_model import LAYERS, MASK, PAD, Corpus, build, states_and_attention, trained
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from heedful.architectures.transformer.masked_models import MaskedLanguageModel
from heedful.corpora.sampling import divide
from heedful.corpora.scenes import Sentence, english
from heedful.corpora.scenes.lexicon import Noun
from heedful.corpora.scenes.sentence import sentence
from heedful.corpora.scenes.stories import story
from heedful.corpora.scenes.tree import Phrase, Pronoun

TRAINING, MEASURED, UPDATES = 20_000, 3_000, 3_000
SENTENCES = 3  # in a passage
PRONOUNS = ("he", "him", "she", "her")
PEOPLE = ("person", "name")  # categories of nouns
NEAR, FAR = 4, 8  # words between a pronoun and the last mention of its antecedent: at most, and more than
GREY = "#bbbbbb"


class Passage(NamedTuple):
    """Sentences from the beginning of a story; by the number of a word, what its nouns and pronouns stand for."""

    sentence: Sentence
    nouns: dict[int, Noun]
    pronouns: dict[int, Noun]


class Example(NamedTuple):
    """A pronoun: the numbers of its passage and of its word, the earlier nouns by their numbers, and what it means."""

    passage: int
    word: int
    nouns: dict[int, Noun]
    antecedent: Noun


def passages() -> Iterator[Passage]:
    for index in itertools.count():
        words = [word for scene in story(1, index)[:SENTENCES] for word in english.realise(scene)]
        nouns: dict[int, Noun] = {}
        pronouns: dict[int, Noun] = {}
        for number, word in enumerate(words):
            for node, part in word.links:
                if part == "noun" and isinstance(node, Phrase):
                    nouns[number] = node.noun
                elif isinstance(node, Pronoun) and node.noun and word.text in PRONOUNS:
                    pronouns[number] = node.noun
        yield Passage(sentence(words, english.SPACE, english.ATTACHED), nouns, pronouns)


def examples_of(measured: Sequence[Passage]) -> list[Example]:
    """List the pronouns with the antecedent and another person before them."""
    examples = []
    for number, passage in enumerate(measured):
        for word, antecedent in passage.pronouns.items():
            nouns = {position: noun for position, noun in passage.nouns.items() if position < word}
            people = {noun for noun in nouns.values() if noun.category in PEOPLE}
            if antecedent in people and len(people) > 1:
                examples.append(Example(number, word, nouns, antecedent))
    return examples


RULES = {  # the number of the noun that a pronoun is taken to mean
    "nearest noun": lambda example: max(example.nouns),
    "first noun": lambda example: min(example.nouns),
    "nearest person": lambda example: max(n for n, noun in example.nouns.items() if noun.category in PEOPLE),
    "first person": lambda example: min(n for n, noun in example.nouns.items() if noun.category in PEOPLE),
}


class Shares(NamedTuple):
    """How often an answer is right: for all pronouns, for those near their antecedent, and for those far from it."""

    all: float
    near: float
    far: float


class Measurements:
    """What is measured of a model on half of the examples; the others choose heads and rules, and train probes."""

    def __init__(self, data: Corpus, measured: Sequence[Passage]) -> None:
        self.examples = examples_of(measured)
        self.tokens = data.batch([passage.sentence for passage in measured])
        self.rows = torch.tensor([example.passage for example in self.examples])
        self.columns = torch.tensor([example.word for example in self.examples])
        self.pronouns = [data.ids[pronoun] for pronoun in PRONOUNS]
        self.is_chosen = np.arange(len(self.examples)) < len(self.examples) / 2
        self.distances = np.array(
            [
                each.word - max(number for number, noun in each.nouns.items() if noun is each.antecedent)
                for each in self.examples
            ]
        )
        # Whether each word is an earlier noun, and whether it is the antecedent, (N, T).
        self.is_noun = torch.zeros(len(self.examples), self.tokens.shape[1], dtype=torch.bool)
        self.is_right = self.is_noun.clone()
        for number, example in enumerate(self.examples):
            for word, noun in example.nouns.items():
                self.is_noun[number, word], self.is_right[number, word] = True, noun is example.antecedent

    def best(self, right: np.ndarray) -> np.ndarray:
        """Of several answers, (M, N), return where the best one of the first half is right, (N,)."""
        return right[right[:, self.is_chosen].mean(1).argmax()]

    def shares(self, right: np.ndarray) -> Shares:
        """Return how often an answer is right in the second half: everywhere, near and far."""
        places = (True, self.distances <= NEAR, self.distances > FAR)
        return Shares(*(float(right[~self.is_chosen & place].mean()) for place in places))

    def rules(self) -> Shares:
        """Return how often the best rule is right."""
        answers = [[each.nouns[rule(each)] is each.antecedent for each in self.examples] for rule in RULES.values()]
        return self.shares(self.best(np.array(answers)))

    def heads(self, attention: Sequence[Tensor]) -> Shares:
        """Return how often the best head attends more to the antecedent than to any other noun before the pronoun."""
        weights = torch.cat([layer[self.rows, :, self.columns] for layer in attention], dim=1)  # (N, L * H, T)
        nouns = weights.masked_fill(~self.is_noun[:, None], -1).argmax(-1)
        return self.shares(self.best(self.is_right.gather(1, nouns).T.numpy()))

    def probes(self, states: Sequence[Tensor]) -> list[float]:
        """Return, for each layer, how often a linear probe reads the antecedent from the state of the pronoun."""
        labels = np.array([example.antecedent.english[0] for example in self.examples])
        accuracies = []
        for layer in states:
            vectors = layer[self.rows, self.columns].numpy()
            scaled = (vectors - vectors.mean(0)) / vectors.std(0).clip(1e-6)
            classifier = LogisticRegression(C=0.3, max_iter=500).fit(scaled[self.is_chosen], labels[self.is_chosen])
            accuracies.append(float(classifier.score(scaled[~self.is_chosen], labels[~self.is_chosen])))
        return accuracies

    def filled(self, model: MaskedLanguageModel) -> Shares:
        """Mask each pronoun; return how often the model gives it more probability than the three others."""
        tokens = self.tokens[self.rows].clone()
        answers = tokens[range(len(tokens)), self.columns]
        tokens[range(len(tokens)), self.columns] = MASK
        with torch.no_grad():
            logits = model(tokens, tokens != PAD)[range(len(tokens)), self.columns]
        guesses = torch.tensor(self.pronouns)[logits[:, self.pronouns].argmax(-1)]
        return self.shares((guesses == answers).numpy())

    def most_frequent(self) -> float:
        """Return the share of the most frequent pronoun."""
        pronouns = self.tokens[self.rows, self.columns].tolist()
        return Counter(pronouns).most_common(1)[0][1] / len(pronouns)


def main() -> None:
    options = arguments(__doc__, seeds=3)
    training, measured = (200, 80) if options.quick else (TRAINING, MEASURED)
    sizes = {"train": training, "valid": measured, "test": 0}
    parts = divide(passages(), lambda item: item.sentence.text, sizes)
    sentences = {part: [item.sentence for item in items] for part, items in parts.items()}
    words = sorted({word.lower() for part in sentences.values() for each in part for word in each.words})
    data = Corpus(sentences["train"], sentences["valid"], {word: number for number, word in enumerate(words, start=2)})
    measurements = Measurements(data, parts["valid"])

    after, before, filled = [], [], []
    for seed in range(options.seeds):
        model = trained(data, seed, 2 if options.quick else UPDATES)
        for runs, each in ((after, model), (before, build(data, seed))):
            states, attention = states_and_attention(each, measurements.tokens)
            runs.append((measurements.heads(attention), measurements.probes(states)))
        filled.append(measurements.filled(model))
        print(seed, after[-1], filled[-1], flush=True)
    rules, frequent = measurements.rules(), measurements.most_frequent()

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    lines = {
        "best rule": ([rules], BROWN),
        "best head before training": ([heads for heads, _ in before], GREY),
        "best head after training": ([heads for heads, _ in after], BLUE),
        "masked pronoun": (filled, "#3a7d44"),
    }
    for label, (shares, colour) in lines.items():
        left.bar(label, np.mean([each.all for each in shares]), color=colour)
        middle.plot(("near", "far"), [np.mean([each.near for each in shares]), np.mean([each.far for each in shares])])
        middle.lines[-1].set(color=colour, label=label, marker="o")
    left.set(ylabel="right answers", ylim=(0, 1.03))
    left.tick_params(axis="x", rotation=30)
    middle.set(ylabel="right answers", ylim=(0, 1.03), xlim=(-0.3, 1.3))
    for label, runs, style in (("after training", after, "-"), ("before training", before, ":")):
        right.plot(np.mean([probes for _, probes in runs], axis=0), style, color=BLUE, label=label)
    right.set(xlabel="layer", ylabel="accuracy of the probe", xticks=range(LAYERS + 1), ylim=(0, 1.03))
    right.legend(fontsize="small")

    predictions = [
        check("head", [heads.all - rules.all for heads, _ in after], least=0.05),
        check(
            "head_gain",
            [heads.all - other.all for (heads, _), (other, _) in zip(after, before, strict=True)],
            least=0.1,
        ),
        check("probe", [max(probes) - probes[0] for _, probes in after], least=0.1),
        check("probe_gain", [max(a) - max(b) for (_, a), (_, b) in zip(after, before, strict=True)], least=0.1),
        check("filled", [each.all - frequent for each in filled], least=0.1),
        check("head_far", [heads.near - heads.far for heads, _ in after], least=0.05),
        check("filled_far", [each.near - each.far for each in filled], least=0.05),
    ]
    publish(
        "coreference",
        predictions,
        figure,
        options,
        examples=len(measurements.examples),
        far=int((measurements.distances > FAR).sum()),
        rules=rules,
        frequent=frequent,
        filled=filled,
        heads=[heads for heads, _ in after],
        probes=[probes for _, probes in after],
    )


if __name__ == "__main__":
    main()
