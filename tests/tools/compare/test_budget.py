"""Budgets: what they set, which sizes they accept, and what they say of a training that ended elsewhere."""

import re
from dataclasses import replace

import pytest

from heedful.errors import InputError
from heedful.tasks.model_size import SizeOnly
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.tools.compare.setup import Budget, model_size, nearest_width
from reversal import recipe

WORDS = SizeOnly(29)
TOKENIZERS = TokenizerPair(WORDS, WORDS)


def test_a_budget_is_settings_of_the_recipe():
    assert Budget().overrides == ()
    assert Budget(updates=7, minutes=0.5).overrides == ("train.max_updates=7", "train.max_minutes=0.5")


def test_sizes_within_the_tolerance_are_accepted_and_others_are_told_a_width(tmp_path):
    toy = recipe(tmp_path)
    size = model_size(toy, TOKENIZERS)
    for wanted in (size, round(size * 1.04), round(size / 1.04)):
        assert Budget(parameters=wanted).check_size(toy, TOKENIZERS) == size
    with pytest.raises(
        InputError, match=rf"has {size:,} parameters, but --parameters \S+ allows at most 5% deviation"
    ) as refused:
        Budget(parameters=2 * size).check_size(toy, TOKENIZERS)
    width, found = re.findall(r"with model\.d_model = (\d+) it would have ([\d,]+)", str(refused.value))[0]
    wider = replace(toy, model=replace(toy.model, d_model=int(width)))
    assert model_size(wider, TOKENIZERS) == int(found.replace(",", ""))


def test_no_possible_width_is_nearer_than_the_one_proposed(tmp_path):
    toy = recipe(tmp_path, model={"d_model": 18, "heads": 3})
    sizes = {
        width: model_size(replace(toy, model=replace(toy.model, d_model=width)), TOKENIZERS)
        for width in range(6, 399, 6)
    }
    for wanted in (1, 40_009, 200_003):
        nearest = min(sizes, key=lambda width: abs(sizes[width] - wanted))
        assert nearest_width(toy, TOKENIZERS, wanted) == (nearest, sizes[nearest])


@pytest.mark.parametrize(
    ("budget", "updates", "seconds", "words"),
    [
        (Budget(), 3, 1.0, []),
        (Budget(updates=19), 19, 1.0, []),
        (Budget(updates=19), 12, 1.0, ["has 12 updates instead of --updates 19"]),
        (Budget(updates=19), None, None, ["has an unknown number of updates instead of --updates 19"]),
        (Budget(minutes=1.0), 12, 61.0, []),
        (
            Budget(minutes=1.0),
            19,
            30.0,
            ["was trained for 0.5 minutes instead of --minutes 1: its recipe ends training earlier"],
        ),
        (
            Budget(minutes=1.0),
            19,
            None,
            ["was trained for an unknown time instead of --minutes 1: its recipe ends training earlier"],
        ),
        (Budget(updates=19, minutes=1.0), 12, 61.0, []),
        (Budget(parameters=99), 19, 30.0, []),
        (Budget(parameters=1000), 19, 30.0, ["has 100 parameters instead of --parameters 1,000"]),
        (Budget(updates=19, minutes=1.0), 19, 30.0, []),
    ],
)
def test_a_training_that_ended_before_its_budget_is_told(budget, updates, seconds, words, tmp_path):
    assert budget.remarks(recipe(tmp_path), updates, seconds, 100) == words


def test_a_learning_rate_that_did_not_reach_its_end_is_told(tmp_path):
    falling = recipe(tmp_path, optimizer={"schedule": "linear"})
    assert Budget(minutes=1.0).remarks(falling, 12, 61.0, 100) == [
        'has a learning rate (schedule "linear") that would fall until update 19, not 12'
    ]
    assert Budget(minutes=1.0).remarks(falling, 19, 61.0, 100) == []
