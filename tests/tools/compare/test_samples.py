"""Samples: the first sentences, those with the largest differences, and not all of a long document."""

from heedful.tools.compare.job import TestResult
from heedful.tools.compare.statistics import MAX_CHARACTERS, ScoredTexts, choose_samples


def result(outputs):
    texts = {"source": [f"s{i}" for i in range(11)], "reference": ["r" * 2000] * 11, "output": outputs}
    return TestResult(count=11, scores={}, seconds=1.0, tokens=1, texts=texts)


def test_sentences_with_the_largest_differences_come_first():
    tests = {name: result([f"{name}{i}" for i in range(11)]) for name in "ab"}
    scores = {"a": [0.0] * 11, "b": [0.0, 0.5, 0.0, 1.0, *[0.0] * 7]}
    samples = {name: ScoredTexts({"exact_match": own}) for name, own in scores.items()}
    first, different = choose_samples(tests, samples)
    assert [sample.number for sample in first] == [1, 2, 3, 4]
    assert [(sample.number, sample.outputs, sample.scores) for sample in different] == [
        (4, {"a": "a3", "b": "b3"}, {"a": 0.0, "b": 1.0}),
        (2, {"a": "a1", "b": "b1"}, {"a": 0.0, "b": 0.5}),
    ]
    assert len(first[0].reference) == MAX_CHARACTERS
    assert first[0].reference.endswith("r …")


def test_without_texts_there_are_no_samples():
    assert choose_samples({}, {}) == ([], [])
