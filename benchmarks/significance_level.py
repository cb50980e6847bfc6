"""How often equally good systems "differ significantly": python benchmarks/significance_level.py [--pairs N]

Prints, for each metric, the share of null pairs with p < 0.05, which should be close to 5 %. Two systems make
independent errors at one rate on many examples, which are scored once. Each pair takes 100 of these examples, and of
each example one of the two systems at random: no pair differs but by chance. p-values are those of `heedful evaluate`
and `heedful compare`.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from heedful.metrics import METRICS, Comparison, Scoring
from heedful.metrics.answers import answer_f1, exact_match
from heedful.metrics.bootstrap import ExampleScores, bootstrap_scores, compare_scores, example_scores, mean_scores
from heedful.metrics.classes import Classes, F1Counts
from heedful.metrics.correlation import pearson, spearman
from heedful.metrics.metric import Outputs, find_metric, names_of
from heedful.metrics.texts import character_errors, error_rate, rouge_l, rouge_n, word_errors
from heedful.metrics.translation import resampled
from heedful.tasks.image_text_retrieval import retrieval
from heedful.tasks.ranking import retrieval as ranking
from heedful.tools.compare.statistics import METRICS as COMPARED
from heedful.tools.compare.statistics import BootstrapSample, ScoredTexts

WORDS = [f"w{number}" for number in range(50)]
EXAMPLES = 100  # of each null pair
POOL = 500  # examples that are scored


@dataclass(frozen=True)
class Systems:
    """Two systems: the seed of their errors, the rates of these, and the number of examples that both answer."""

    seed: int = 0
    rates: tuple[float, float] = (0.25, 0.25)
    examples: int = POOL


def texts(systems: Systems, words: int = 12) -> tuple[list[str], list[str]]:
    """Return the outputs of two systems that replace words at the given rates, one after the other, and references."""
    rng = random.Random(systems.seed)
    rows = [[rng.choice(WORDS) for _ in range(words)] for _ in range(systems.examples)]
    outputs = [
        " ".join(word if rng.random() >= rate else rng.choice(WORDS) for word in row)
        for rate in systems.rates
        for row in rows
    ]
    return outputs, [" ".join(row) for row in rows] * 2


def translations(metrics: tuple[str, ...]) -> Callable[[Systems], ExampleScores]:
    """Return the results of two translators by metrics of `heedful evaluate`."""

    def results(systems: Systems) -> ExampleScores:
        outputs, references = texts(systems)
        each = [resampled(name, outputs, [references], Scoring())[0] for name in metrics]
        return ExampleScores(
            len(outputs), lambda chosen: {name: x for one in each for name, x in one.measure(chosen).items()}
        )

    return results


def written(systems: Systems) -> ExampleScores:
    """Return the results of two systems by means over texts."""
    pairs = list(zip(*texts(systems), strict=True))
    short = list(zip(*texts(systems, words=2), strict=True))
    return mean_scores(
        {
            "rougeL": [rouge_l(*pair).f1 for pair in pairs],
            "rouge1": [rouge_n(*pair, 1).f1 for pair in pairs],
            "rouge2": [rouge_n(*pair, 2).f1 for pair in pairs],
            "exact_match": [output.split() == wanted.split() for output, wanted in short],
        }
    )


def answers(systems: Systems) -> ExampleScores:
    """Return the results of two systems that answer questions by a span."""
    pairs = [(output, [wanted]) for output, wanted in zip(*texts(systems, words=3), strict=True)]
    return mean_scores(
        {"f1": [answer_f1(*pair) for pair in pairs], "exact_match": [exact_match(*pair) for pair in pairs]}
    )


def recognition(systems: Systems) -> ExampleScores:
    """Return the word and character error rates of two systems."""
    errors = {"wer": word_errors(*texts(systems)), "cer": character_errors(*texts(systems))}

    def measure(chosen: np.ndarray) -> dict[str, float]:
        return {name: error_rate(*rows[chosen].sum(axis=0).tolist()) for name, rows in errors.items()}

    return ExampleScores(2 * systems.examples, measure)


def classes(count: int) -> Callable[[Systems], ExampleScores]:
    """Return the results of two classifiers of so many classes."""

    def results(systems: Systems) -> ExampleScores:
        rng = np.random.default_rng(systems.seed)
        expected = np.tile(rng.integers(count, size=systems.examples), 2)
        wrong = rng.random(len(expected)) < np.repeat(systems.rates, systems.examples)
        predicted = np.where(wrong, rng.integers(count, size=len(expected)), expected)
        return with_all_metrics(Classes(predicted, expected, [f"c{number}" for number in range(count)]))

    return results


def regression(systems: Systems) -> ExampleScores:
    """Return the correlations of two regressions."""
    rng = np.random.default_rng(systems.seed)
    expected = np.tile(rng.normal(size=systems.examples), 2)
    predicted = expected + 2 * np.repeat(systems.rates, systems.examples) * rng.normal(size=len(expected))
    scores = {"pearson": pearson, "spearman": spearman}
    return ExampleScores(
        len(expected),
        lambda chosen: {name: score(predicted[chosen], expected[chosen]) for name, score in scores.items()},
    )


def tagging(systems: Systems) -> ExampleScores:
    """Return F1, precision and recall of the spans of two taggers, and the accuracy of their tags."""
    rng = np.random.default_rng(systems.seed)
    rates = np.repeat(systems.rates, systems.examples)
    expected, words = (np.tile(rng.integers(*ends, size=systems.examples), 2) for ends in ((1, 4), (5, 20)))
    correct, wrong = rng.binomial(expected, 1 - rates), rng.poisson(0.3, len(expected))
    counts = np.stack([correct, correct + wrong, expected, rng.binomial(words, 1 - rates), words], axis=1)

    def measure(chosen: np.ndarray) -> dict[str, float]:
        *spans, right, tags = counts[chosen].sum(0).tolist()
        tally = F1Counts(*spans)
        return {"f1": tally.f1, "precision": tally.precision, "recall": tally.recall, "accuracy": right / tags}

    return ExampleScores(len(counts), measure)


def vectors(systems: Systems) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the vectors of queries and those of what each should find, all of length 1, for each of two systems."""
    rng = np.random.default_rng(systems.seed)
    meanings = rng.normal(size=(systems.examples, 8))
    for rate in systems.rates:
        noisy = [meanings + 2 * rate * rng.normal(size=meanings.shape) for _ in range(2)]
        first, second = ((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in noisy)
        yield first, second


def pictures_and_texts(systems: Systems) -> ExampleScores:
    """Return the results of two systems that find texts for images, and images for texts."""
    numbers = np.arange(systems.examples)
    return one_after_other([with_all_metrics(retrieval(*pair, numbers, numbers)) for pair in vectors(systems)])


def passages(systems: Systems) -> ExampleScores:
    """Return the results of two systems that find passages for queries."""
    right = [{number} for number in range(systems.examples)]
    return one_after_other([with_all_metrics(ranking(*pair, right)) for pair in vectors(systems)])


def with_all_metrics(outputs: Outputs) -> ExampleScores:
    """Compute all metrics of outputs."""
    return example_scores(outputs, {name: find_metric(name, outputs.kind) for name in names_of(outputs.kind)})


def one_after_other(results: list[ExampleScores]) -> ExampleScores:
    """Join results whose scores are means over examples."""
    each = [one.measure(np.array([example])) for one in results for example in range(one.count)]
    return mean_scores({name: [scores[name] for scores in each] for name in each[0]})


def evaluated(baseline: ExampleScores, system: ExampleScores, samples: int) -> list[Comparison]:
    """Compare two systems as `heedful evaluate --against` does."""
    return compare_scores(baseline, system, samples)


def drawn(baseline: ExampleScores, system: ExampleScores, samples: int) -> list[Comparison]:
    """Compare two systems as `heedful compare` does where it knows the scores of resamples only."""
    one, two = (BootstrapSample(bootstrap_scores(outcomes, samples)) for outcomes in (baseline, system))
    return two.against(one)


def scored(baseline: ExampleScores, system: ExampleScores, _samples: int) -> list[Comparison]:
    """Compare two systems as `heedful compare` does by the scores of single texts, with 1,000 draws."""
    one, two = (ScoredTexts(figures(outcomes)) for outcomes in (baseline, system))
    return two.against(one)


def figures(outcomes: ExampleScores) -> dict[str, list[float]]:
    """Return the scores of each example by itself."""
    each = [outcomes.measure(np.array([example])) for example in range(outcomes.count)]
    return {name: [scores[name] for scores in each] for name in each[0]}


@dataclass(frozen=True)
class Kind:
    """Kind of systems.

    Attributes:
        results: Makes the results of two systems, one after the other, on the same examples.
        compare: Compares the second of two systems with the first by so many draws.
    """

    results: Callable[[Systems], ExampleScores]
    compare: Callable[[ExampleScores, ExampleScores, int], list[Comparison]] = evaluated


KINDS = {
    "translation": Kind(translations(METRICS)),
    "texts": Kind(written),
    "answers": Kind(answers),
    "recognition": Kind(recognition),
    "2 classes": Kind(classes(2)),
    "5 classes": Kind(classes(5)),
    "regression": Kind(regression),
    "tagging": Kind(tagging),
    "pictures and texts": Kind(pictures_and_texts),
    "passages": Kind(passages),
    "compare, translations": Kind(translations(COMPARED), drawn),
    "compare, texts": Kind(written, scored),
    "compare, answers": Kind(answers, drawn),
    "compare, passages": Kind(passages, drawn),
}


def part(outcomes: ExampleScores, rows: np.ndarray) -> ExampleScores:
    """Return the results on some of the examples."""
    return ExampleScores(len(rows), lambda chosen: outcomes.measure(rows[chosen]))


def rejections(kind: str, pairs: int, samples: int) -> Counter[str]:
    """Count, for each metric, the pairs of equally good systems whose difference is significant; 0 counts too."""
    rng, results = np.random.default_rng(0), KINDS[kind].results(Systems())
    rejected: Counter[str] = Counter()
    for _ in range(pairs):
        chosen, swapped = rng.permutation(POOL)[:EXAMPLES], POOL * rng.integers(2, size=EXAMPLES)
        pair = part(results, chosen + swapped), part(results, chosen + POOL - swapped)
        rejected.update({found.name: int(found.is_significant) for found in KINDS[kind].compare(*pair, samples)})
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
