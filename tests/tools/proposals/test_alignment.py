"""Strangers side by side are noticed, and translations are not suspected."""

import random

import numpy as np
import pytest

from heedful.tools.proposals.pairs import misaligned_lines
from heedful.tools.proposals.text_statistics import StatisticsBuilder, TextStatistics


def sentences(count: int, seed: int = 3) -> tuple[list[str], list[str]]:
    """Lines whose lengths go together about as well as those of translations: a correlation of 0.8."""
    rng = random.Random(seed)
    lengths = [rng.randint(7, 113) for _ in range(count)]
    source = ["e" * length for length in lengths]
    return source, ["d" * max(1, round(length * rng.gauss(1.1, 0.3))) for length in lengths]


def side(texts: list[str]) -> TextStatistics:
    statistics = StatisticsBuilder()
    for text in texts:
        statistics.add(text)
    return statistics.build()


def shuffled(texts: list[str], seed: int = 1) -> list[str]:
    return random.Random(seed).sample(texts, len(texts))


@pytest.mark.parametrize("count", [41, 101, 997, 5003])
def test_a_shuffled_side_is_noticed_and_translations_are_not_suspected(count: int) -> None:
    source, target = sentences(count)
    assert misaligned_lines(side(source), side(target)) == []
    assert misaligned_lines(side(source), side(shuffled(target))) == [(0, count)]


@pytest.mark.parametrize("seed", range(31))
def test_few_translations_are_not_suspected(seed: int) -> None:
    source, target = sentences(47, seed)
    assert misaligned_lines(side(source), side(target)) == []


def test_a_shift_in_the_middle_is_noticed_where_it_is() -> None:
    source, target = sentences(5_003)
    target = [*target[:1_009], *target[1_010:2_503], target[1_009], *target[2_503:]]
    [(begin, end)] = misaligned_lines(side(source), side(target))
    assert 500 <= begin <= 1_500
    assert 2_000 <= end <= 3_000


@pytest.mark.parametrize("mark", ["?", "？", " 7"])
def test_questions_and_numbers_tell_where_lengths_do_not(mark: str) -> None:
    marks = [mark if number % 3 else "" for number in range(601)]
    source, target = [f"word{mark}" for mark in marks], [f"字{mark}" for mark in marks]
    equal = [text.ljust(17, "x") if not mark else text for text, mark in zip(source, marks, strict=True)]
    assert misaligned_lines(side(equal), side(target)) == []
    assert misaligned_lines(side(equal), side(shuffled(target))) == [(0, 601)]


def test_lines_that_do_not_differ_tell_nothing() -> None:
    same = side(["one two"] * 211)
    assert misaligned_lines(same, side(["eins"] * 211)) == []
    assert misaligned_lines(same, side(sentences(211)[1])) == []


def test_too_few_lines_tell_nothing() -> None:
    source, target = sentences(37)
    assert misaligned_lines(side(source), side(shuffled(target))) == []
    assert np.isfinite(side(source).characters).all()
