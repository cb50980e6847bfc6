"""How often equally good systems "differ significantly": python benchmarks/significance_level.py [--pairs N]

Prints, for each metric, the share of null pairs with p < 0.05, which should be close to 5 %. Each pair of systems makes
independent errors at one rate on a test set of 100 examples; p-values are those of `heedful evaluate` and `compare`.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from heedful.compare.statistics import ScoredTexts, Translations
from heedful.evaluate import METRICS, Comparison, Scoring, paired_bootstrap
from heedful.evaluate.classes import Classes
from heedful.evaluate.correlation import pearson, spearman
from heedful.evaluate.error_rate import character_errors, word_errors
from heedful.evaluate.f1 import F1Counts
from heedful.evaluate.metrics import find_metric
from heedful.evaluate.outputs import outcomes_of
from heedful.evaluate.rouge import rouge_l, rouge_n
from heedful.evaluate.significance import Outcomes, compare_outcomes

WORDS = [f"w{number}" for number in range(50)]
EXAMPLES = 100


@dataclass(frozen=True)
class Systems:
    """Two systems: the seed of their errors, the rates of these, and the number of examples of the test set."""

    seed: int
    rates: tuple[float, float] = (0.25, 0.25)
    examples: int = EXAMPLES


def texts(systems: Systems) -> tuple[list[str], list[str], list[str]]:
    """Return references, and the outputs of two systems that replace words at the given rates."""
    rng = random.Random(systems.seed)
    rows = [[rng.choice(WORDS) for _ in range(12)] for _ in range(systems.examples)]
    one, two = (
        [" ".join(word if rng.random() >= rate else rng.choice(WORDS) for word in row) for row in rows]
        for rate in systems.rates
    )
    return [" ".join(row) for row in rows], one, two


def translations(systems: Systems, samples: int) -> list[Comparison]:
    """Compare two translators by all metrics of `heedful evaluate --against`."""
    references, one, two = texts(systems)
    return paired_bootstrap(one, two, [references], Scoring(metrics=METRICS), samples)


def compared_translations(systems: Systems, _samples: int) -> list[Comparison]:
    """Compare two translators as `heedful compare` does."""
    references, one, two = map(tuple, texts(systems))
    return Translations(two, references, "", ("bleu",)).against(Translations(one, references, "", ("bleu",)))


def compared_texts(systems: Systems, _samples: int) -> list[Comparison]:
    """Compare two systems by a mean over texts, as `heedful compare` does."""
    references, *outputs = texts(systems)
    pairs = [list(zip(lines, references, strict=True)) for lines in outputs]
    one, two = (
        ScoredTexts(
            {"rouge_l": [rouge_l(*pair).f1 for pair in each], "rouge_1": [rouge_n(*pair, 1).f1 for pair in each]}
        )
        for each in pairs
    )
    return two.against(one)


def error_rates(systems: Systems, samples: int) -> list[Comparison]:
    """Compare two systems by word and character error rate."""
    references, *outputs = texts(systems)
    one, two = (rates_of(lines, references) for lines in outputs)
    return compare_outcomes(one, two, samples)


def rates_of(lines: list[str], references: list[str]) -> Outcomes:
    """Count the errors of each output."""
    words, characters = word_errors(lines, references), character_errors(lines, references)
    return Outcomes(len(lines), lambda chosen: {"wer": words.rate(chosen), "cer": characters.rate(chosen)})


def classes(count: int) -> Callable[[Systems, int], list[Comparison]]:
    """Return a comparison of two classifiers of so many classes."""

    def compare(systems: Systems, samples: int) -> list[Comparison]:
        rng = np.random.default_rng(systems.seed)
        expected = rng.integers(count, size=systems.examples)
        predicted = (
            np.where(rng.random(systems.examples) < rate, rng.integers(count, size=systems.examples), expected)
            for rate in systems.rates
        )
        one, two = (labelled(each, expected, count) for each in predicted)
        return compare_outcomes(one, two, samples)

    return compare


def labelled(predicted: np.ndarray, expected: np.ndarray, count: int) -> Outcomes:
    """Return the outcomes of a classifier."""
    outputs = Classes(predicted, expected, [str(label) for label in range(count)])
    names = [name for name in ("accuracy", "macro_f1", "f1", "matthews") if name != "f1" or count == 2]
    return outcomes_of(outputs, {name: find_metric(name, Classes.kind) for name in names})


def correlations(systems: Systems, samples: int) -> list[Comparison]:
    """Compare two regressions."""
    rng = np.random.default_rng(systems.seed)
    expected = rng.normal(size=systems.examples)
    one, two = (correlated(expected + 2 * rate * rng.normal(size=systems.examples), expected) for rate in systems.rates)
    return compare_outcomes(one, two, samples)


def correlated(predicted: np.ndarray, expected: np.ndarray) -> Outcomes:
    """Return the outcomes of a regression."""
    scores = {"pearson": pearson, "spearman": spearman}
    return Outcomes(
        len(expected),
        lambda chosen: {name: score(predicted[chosen], expected[chosen]) for name, score in scores.items()},
    )


def spans(systems: Systems, samples: int) -> list[Comparison]:
    """Compare two taggers by F1, precision and recall of spans."""
    rng = np.random.default_rng(systems.seed)
    expected = rng.integers(1, 4, size=systems.examples)
    one, two = (
        tagged(rng.binomial(expected, 1 - rate), rng.poisson(0.3, systems.examples), expected) for rate in systems.rates
    )
    return compare_outcomes(one, two, samples)


def tagged(correct: np.ndarray, wrong: np.ndarray, expected: np.ndarray) -> Outcomes:
    """Return the outcomes of a tagger."""
    counts = np.stack([correct, correct + wrong, expected], axis=1)

    def measure(chosen: np.ndarray) -> dict[str, float]:
        tally = F1Counts(*counts[chosen].sum(0).tolist())
        return {"f1": tally.f1, "precision": tally.precision, "recall": tally.recall}

    return Outcomes(len(counts), measure)


KINDS: dict[str, Callable[[Systems, int], list[Comparison]]] = {
    "translation": translations,
    "compare, translations": compared_translations,
    "compare, texts": compared_texts,
    "recognition": error_rates,
    "2 classes": classes(2),
    "5 classes": classes(5),
    "regression": correlations,
    "tagging": spans,
}


def rejections(kind: str, pairs: int, samples: int, like: Systems = Systems(0)) -> Counter[str]:
    """Count, for each metric of a kind of systems, the pairs whose difference is significant; 0 counts too.

    The pairs are as `like` says, with seeds from 0.
    """
    rejected: Counter[str] = Counter()
    for seed in range(pairs):
        compared = KINDS[kind](replace(like, seed=seed), samples)
        rejected.update({found.name: int(found.is_significant) for found in compared})
    return rejected


def table(kinds: list[str], pairs: int, samples: int) -> Iterator[str]:
    """Yield a line for each metric: the share of significant differences among equally good systems."""
    for kind in kinds:
        for name, count in rejections(kind, pairs, samples).items():
            yield f"{kind:24}{name:32}{count / pairs:7.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=499)
    options = parser.parse_args()
    for line in table(options.kinds, options.pairs, options.samples):
        print(line, flush=True)


if __name__ == "__main__":
    main()
