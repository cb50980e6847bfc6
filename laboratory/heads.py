"""Do attention heads follow syntactic relations? python laboratory/heads.py [--help]

For each relation, the best head is compared with the best fixed distance, as in Clark et al. (2019, section 4.2).
"""

from collections import Counter
from collections.abc import Iterator

import matplotlib.pyplot as plt
import torch
from models import BLUE, BROWN
from report import arguments, check, publish
from scenes_model import HEADS, build, corpus, states_and_attention, trained
from torch import Tensor

from heedful.architectures.transformer.masked_models import MaskedLanguageModel
from heedful.corpora.scenes import Sentence

TRAINING, MEASURED, UPDATES = 20_000, 1_000, 3_000
CHOSEN_ON = 0.5  # share of the sentences on which head and distance are chosen; the others measure them
CLAUSE = {  # relations between two words of a clause, by the roles of both
    "subject to verb": ("subject", "verb"),
    "verb to subject": ("verb", "subject"),
    "object to verb": ("object", "verb"),
    "verb to object": ("verb", "object"),
    "place to verb": ("place", "verb"),
    "verb to auxiliary": ("verb", "auxiliary"),
}
MODIFIERS = {"determiner to noun": "determiner", "adjective to noun": "adjective"}
RELATIONS = [*CLAUSE, *MODIFIERS]
NOUNS = {"subject", "object", "place", "agent", "recipient", "standard", "possessor"}
GREY = "#bbbbbb"

Examples = dict[str, list[tuple[int, int, int]]]  # by relation: the sentence, the word that attends, and the other word


def related(sentence: Sentence) -> Iterator[tuple[str, int, int]]:
    """Yield the relations in a sentence with one verb: the name, the word that attends, and the word it belongs to."""
    roles = sentence.roles
    for name, (first, second) in CLAUSE.items():
        if roles.count(first) == roles.count(second) == 1:
            yield name, roles.index(first), roles.index(second)
    for name, modifier in MODIFIERS.items():
        for position, role in enumerate(roles):
            noun = next((later for later in range(position + 1, len(roles)) if roles[later] in NOUNS), None)
            if role == modifier and noun is not None:
                yield name, position, noun


def examples_of(sentences: list[Sentence]) -> tuple[Examples, Examples]:
    """Return the relations in the sentences on which heads are chosen, and in those on which they are measured."""
    parts: tuple[Examples, Examples] = ({}, {})
    for number, sentence in enumerate(sentences):
        for name, word, other in related(sentence):
            part = parts[number >= CHOSEN_ON * len(sentences)]
            part.setdefault(name, []).append((number, word, other))
    return parts


def agreement(strongest: Tensor, examples: list[tuple[int, int, int]]) -> Tensor:
    """Return, for each layer and head, how often a word attends most to the word that it belongs to, (L, H)."""
    sentences, words, others = torch.tensor(examples).T
    return (strongest[:, sentences, :, words] == others[:, None, None]).float().mean(0)


def best_head(model: MaskedLanguageModel, tokens: Tensor, chosen: Examples, measured: Examples) -> dict[str, float]:
    """Choose the head that agrees best with each relation on some sentences; return its agreement on others."""
    _, attention = states_and_attention(model, tokens)
    strongest = torch.stack([weights.argmax(-1) for weights in attention])  # (L, B, H, T)
    agreements = {}
    for name in RELATIONS:
        layer, head = divmod(int(agreement(strongest, chosen[name]).argmax()), HEADS)
        agreements[name] = float(agreement(strongest, measured[name])[layer, head])
    return agreements


def best_distance(chosen: list[tuple[int, int, int]], measured: list[tuple[int, int, int]]) -> float:
    """Choose the most frequent distance between the two words; return how often it is right on other sentences."""
    [(distance, _)] = Counter(other - word for _, word, other in chosen).most_common(1)
    return sum(other - word == distance for _, word, other in measured) / len(measured)


def main() -> None:
    options = arguments(__doc__, seeds=8)
    data = corpus(*((500, 300) if options.quick else (TRAINING, MEASURED)))
    sentences = [sentence for sentence in data.measured if sentence.roles.count("verb") == 1]
    chosen, measured = examples_of(sentences)
    tokens = data.batch(sentences)
    after, before = [], []
    for seed in range(options.seeds):
        model = trained(data, seed, 2 if options.quick else UPDATES)
        after.append(best_head(model, tokens, chosen, measured))
        before.append(best_head(build(data, seed), tokens, chosen, measured))
    distances = {name: best_distance(chosen[name], measured[name]) for name in RELATIONS}

    figure, axes = plt.subplots(figsize=(7, 4))
    means = [{name: sum(run[name] for run in runs) / len(runs) for name in RELATIONS} for runs in (after, before)]
    bars = (
        ("best head after training", means[0], BLUE),
        ("best fixed distance", distances, BROWN),
        ("best head before training", means[1], GREY),
    )
    for place, (label, values, colour) in enumerate(bars):
        rows = [row + 0.27 * (place - 1) for row in range(len(RELATIONS))]
        axes.barh(rows, [values[name] for name in RELATIONS], height=0.25, label=label, color=colour)
    axes.set_yticks(range(len(RELATIONS)), RELATIONS)
    axes.set(xlabel="agreement: how often the largest weight is on the related word", xlim=(0, 1))
    axes.invert_yaxis()
    axes.legend(fontsize="small")

    predictions = [
        check("margin", [run[name] - distances[name] for run in after], least=0.05, name=name) for name in RELATIONS
    ]
    predictions += [
        check("gain", [run[name] - other[name] for run, other in zip(after, before, strict=True)], least=0.1, name=name)
        for name in ("subject to verb", "object to verb", "determiner to noun")
    ]
    publish("heads", predictions, figure, options)


if __name__ == "__main__":
    main()
