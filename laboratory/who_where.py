"""Who sits where, in a trained translator? python laboratory/who_where.py [--help]

Heads of the bundled translator are chosen on sentences of `heedful scenes`, whose roles are known, and measured on
other sentences, as in Clark et al. (2019, section 4.2); then they are shown on "The cat sits on the mat."
"""

from collections import Counter
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from models import BLUE, BROWN
from report import arguments, check, publish

import heedful
from heedful.corpora.scenes import Sentence, split
from heedful.predictors import Translator

MODEL = "en-de"
EXAMPLE = Sentence(
    ("The", "cat", "sits", "on", "the", "mat", "."),
    ("determiner", "subject", "verb", "preposition", "determiner", "place", "punctuation"),
    "The cat sits on the mat.",
)
HEADS = 4  # of each layer of the model
CHOOSING, MEASURED = 1_000, 3_000  # generated sentences, of which those with one verb are used
RELATIONS = ("verb to subject", "verb to place", "article to noun")
NOUNS = {"subject", "object", "place", "agent", "recipient", "standard", "possessor"}


class Link(NamedTuple):
    """Two related words of a sentence, by their numbers: the one that attends, and the other one."""

    relation: str
    word: int
    other: int


def related(item: Sentence) -> list[Link]:
    """List the relations of a sentence with one verb."""
    roles, verb = item.roles, item.roles.index("verb")
    links = [
        Link(f"verb to {role}", verb, roles.index(role)) for role in ("subject", "place") if roles.count(role) == 1
    ]
    for word, text in enumerate(item.words):
        noun = next((later for later in range(word + 1, len(roles)) if roles[later] in NOUNS), None)
        if text.lower() == "the" and noun is not None:
            links.append(Link("article to noun", word, noun))
    return links


def word_numbers(pieces: list[str], item: Sentence) -> list[int]:
    """Return the number of the word that each piece belongs to; <eos> belongs to none, -1."""
    ends = np.cumsum([len(word) for word in item.words])
    numbers, letters = [], 0
    for piece in pieces:
        numbers.append(int(np.searchsorted(ends, letters, side="right")) if letters < ends[-1] else -1)
        letters += len(piece.removeprefix("▁"))
    return numbers


def attention(translator: Translator, item: Sentence) -> np.ndarray:
    """Return how much the first piece of each word attends to the pieces of each word, (heads of all layers, W, W)."""
    trace = heedful.trace(translator, item.text, keep="enc.*.self.attn")
    weights = np.concatenate([trace[name].numpy() for name in trace])  # (heads, pieces, pieces)
    numbers = np.array(word_numbers(trace["enc.0.self.attn"].labels[1], item))
    first = [int(np.argmax(numbers == word)) for word in range(len(item.words))]
    return np.stack([weights[:, first][:, :, numbers == word].sum(-1) for word in range(len(item.words))], axis=-1)


def agreement(translator: Translator, items: list[Sentence]) -> tuple[dict[str, np.ndarray], dict[str, list[int]]]:
    """Return, by relation, whether each head attends most to the other word of each link, (links, heads); distances."""
    right: dict[str, list[np.ndarray]] = {relation: [] for relation in RELATIONS}
    distances: dict[str, list[int]] = {relation: [] for relation in RELATIONS}
    for item in items:
        strongest = attention(translator, item).argmax(-1)
        for relation, word, other in related(item):
            right[relation].append(strongest[:, word] == other)
            distances[relation].append(other - word)
    return {relation: np.array(rows) for relation, rows in right.items()}, distances


def main() -> None:
    options = arguments(__doc__, seeds=5)  # groups of sentences
    translator = heedful.load(MODEL, "cpu", as_=Translator)
    parts = split("en-de", *((40, 40) if options.quick else (CHOOSING, MEASURED)), 0, seed=1)
    choosing, measured = (
        [item.source for item in parts[part] if item.source.roles.count("verb") == 1] for part in ("train", "valid")
    )
    right, distances = agreement(translator, choosing)
    heads = {relation: int(right[relation].mean(0).argmax()) for relation in RELATIONS}
    usual = {relation: Counter(distances[relation]).most_common(1)[0][0] for relation in RELATIONS}

    groups = [agreement(translator, measured[group :: options.seeds]) for group in range(options.seeds)]
    ours = {
        relation: [float(right[relation][:, heads[relation]].mean()) for right, _ in groups] for relation in RELATIONS
    }
    rules = {
        relation: [float(np.mean(np.array(distances[relation]) == usual[relation])) for _, distances in groups]
        for relation in RELATIONS
    }
    weights = attention(translator, EXAMPLE)
    found = [weights[heads[relation], word].argmax() == other for relation, word, other in related(EXAMPLE)]

    figure, axes = plt.subplots(1, 4, figsize=(13, 3), layout="constrained", width_ratios=(1.2, 1, 1, 1))
    for place, (label, values, colour) in enumerate((("best head", ours, BLUE), ("best distance", rules, BROWN))):
        rows = [row + 0.35 * (place - 0.5) for row in range(len(RELATIONS))]
        means = [np.mean(values[relation]) for relation in RELATIONS]
        axes[0].barh(rows, means, height=0.32, label=label, color=colour)
    axes[0].set_yticks(range(len(RELATIONS)), RELATIONS)
    axes[0].set(xlabel="agreement", xlim=(0, 1))
    axes[0].invert_yaxis()
    axes[0].legend(fontsize="small")
    for panel, relation in zip(axes[1:], RELATIONS, strict=True):
        panel.imshow(weights[heads[relation]], cmap="Blues", vmin=0, vmax=1)
        panel.set_xticks(range(len(EXAMPLE.words)), EXAMPLE.words, rotation=60)
        panel.set_yticks(range(len(EXAMPLE.words)), EXAMPLE.words)
        panel.set_title(relation, fontsize="medium")

    predictions = [
        *(
            check("margin", [a - b for a, b in zip(ours[name], rules[name], strict=True)], least=0.05, name=name)
            for name in RELATIONS
        ),
        check("example", [float(np.mean(found))], least=1.0),
    ]
    layer_heads = {relation: list(divmod(head, HEADS)) for relation, head in heads.items()}
    publish("who_where", predictions, figure, options, heads=layer_heads, agreement=ours, distances=rules, usual=usual)


if __name__ == "__main__":
    main()
