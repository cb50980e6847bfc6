"""Each way to narrow a choice, against token-by-token references, and where it would leave nothing."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_filters import distribution

from heedful.config.schema import GenerateConfig
from heedful.search import sampling as sampling_filters
from heedful.search.generation import GenerationRow
from heedful.search.sampling import FILTERS, apply_filters
from heedful.text.tokenizer import BOS, EOS, PAD

NEVER = [PAD, BOS]
CONFIGS = {
    "plain": GenerateConfig(),
    "cold": GenerateConfig(temperature=0.37),
    "hot": GenerateConfig(temperature=2.3),
    "greedy": GenerateConfig(temperature=0.0),
    "top-k": GenerateConfig(top_k=5),
    "top-k beyond the vocabulary": GenerateConfig(top_k=997),
    "top-p": GenerateConfig(top_p=0.71),
    "all of top-p": GenerateConfig(top_p=1.0),
    "min-p": GenerateConfig(min_p=0.17),
    "all of min-p": GenerateConfig(min_p=1.0),
    "typical": GenerateConfig(typical=0.53),
    "all of typical": GenerateConfig(typical=1.0),
    "repetition": GenerateConfig(repetition_penalty=1.7),
    "repetition wanted": GenerateConfig(repetition_penalty=0.6),
    "frequency": GenerateConfig(frequency_penalty=0.41),
    "presence": GenerateConfig(presence_penalty=-0.83),
    "no token twice": GenerateConfig(no_repeat_ngram=1),
    "no pair twice": GenerateConfig(no_repeat_ngram=2),
    "no three twice": GenerateConfig(no_repeat_ngram=3),
    "everything": GenerateConfig(
        repetition_penalty=1.3,
        frequency_penalty=0.2,
        presence_penalty=0.3,
        no_repeat_ngram=2,
        temperature=1.9,
        top_k=7,
        top_p=0.93,
        min_p=0.05,
        typical=0.8,
    ),
}


def row(config: GenerateConfig, prompt: list[int] | None = None, output: list[int] | None = None) -> GenerationRow:
    made = GenerationRow(config, prompt or [])
    made.output += output or []
    return made


def probs(config: GenerateConfig, logits: torch.Tensor, *said: list[int]) -> list[float]:
    """What one row chooses from."""
    narrowed = apply_filters(logits.double()[None], [row(config, *said)], NEVER)
    return narrowed.softmax(1)[0].tolist()


tokens = st.lists(st.sampled_from([EOS, 4, 5, 6, 7, 12]), max_size=11)


@settings(max_examples=17)
@given(prompt=tokens, output=tokens, seed=st.integers(0, 10**6))
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_what_is_left_is_what_the_definitions_say(config, prompt, output, seed):
    logits = np.random.default_rng(seed).normal(size=13) * 2
    expected = distribution(logits, config, prompt, output, NEVER)
    assert probs(config, torch.from_numpy(logits), prompt, output) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=17)
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("name", ["plain", "greedy", "top-k", "top-p", "min-p", "everything"])
def test_equal_tokens_are_ranked_by_lower_id(name, seed):
    logits = np.log(np.random.default_rng(seed).choice([1.0, 2.0, 4.0], size=17))
    expected = distribution(logits, CONFIGS[name], [], [], NEVER)
    assert probs(CONFIGS[name], torch.from_numpy(logits)) == pytest.approx(expected, abs=1e-12)


def test_rows_with_different_settings_do_not_touch_each_other():
    logits = torch.randn(len(CONFIGS), 13, dtype=torch.float64)
    rows = [row(config, [4, 5, 6, 4], [5, 6, 7]) for config in CONFIGS.values()]
    together = apply_filters(logits, rows, NEVER)
    for place, alone in enumerate(rows):
        assert torch.equal(together[place], apply_filters(logits[place : place + 1], [alone], NEVER)[0])
    order = torch.randperm(len(rows))
    assert torch.equal(apply_filters(logits[order], [rows[i] for i in order], NEVER), together[order])


def test_the_models_logits_are_left_as_they_were():
    logits = torch.randn(2, 13, dtype=torch.float64)
    before = logits.clone()
    apply_filters(logits, [row(CONFIGS["everything"], [4, 5], [4, 5])] * 2, NEVER)
    assert torch.equal(logits, before)


def test_every_setting_that_narrows_comes_in_the_order_of_the_schema():
    fields = list(GenerateConfig.__dataclass_fields__)
    assert list(FILTERS) == fields[1 : fields.index("stop")]


def test_the_token_that_crosses_the_mass_stays():
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64).log()
    left = [
        sampling_filters.top_p(logits, mass).isfinite().sum().item()
        for mass in (0.1, 0.49, 0.51, 0.74, 0.76, 0.87, 0.88)
    ]
    assert left == [1, 1, 2, 2, 3, 3, 4]


def test_a_mass_of_one_leaves_even_the_least_token():
    logits = torch.tensor([[0.0, -60.0, -700.0]], dtype=torch.float64)
    assert sampling_filters.top_p(logits, 1.0).isfinite().all()
    assert sampling_filters.typical(logits, 1.0).isfinite().all()


def test_typical_sampling_may_leave_out_the_likeliest_token():
    logits = torch.tensor([[0.4, *[0.6 / 29] * 29]], dtype=torch.float64).log()  # most surprises are 3.9, the mean 2.7
    assert not sampling_filters.typical(logits, 0.3)[0, 0].isfinite()
    assert sampling_filters.top_p(logits, 0.3)[0].isfinite().tolist() == [True] + [False] * 29


@pytest.mark.parametrize("degree", [1e-320, 1e-9])
def test_the_coldest_temperatures_are_greedy(degree):
    logits = torch.randn(3, 13, dtype=torch.float64) * 50
    cold = sampling_filters.temperature(logits, degree).softmax(1)
    assert torch.equal(cold, torch.nn.functional.one_hot(logits.argmax(1), 13).double())


def test_greedy_takes_the_lower_id_of_equal_tokens():
    logits = torch.tensor([[1.0, 3.0, 3.0, 2.0]], dtype=torch.float64)
    assert sampling_filters.temperature(logits, 0.0).isfinite().tolist() == [[False, True, False, False]]


@pytest.mark.parametrize("mass", [1e-300, 1e-17, 0.001])
def test_the_smallest_mass_leaves_the_best_token(mass):
    logits = torch.randn(3, 13, dtype=torch.float64)
    best = torch.nn.functional.one_hot(logits.argmax(1), 13).bool()
    assert torch.equal(sampling_filters.top_p(logits, mass).isfinite(), best)
    assert (sampling_filters.typical(logits, mass).isfinite().sum(1) == 1).all()


def test_a_mass_that_vanishes_in_rounding_leaves_the_most_typical_token():
    torch.manual_seed(3)
    logits = torch.randn(23, 4999, dtype=torch.float64)
    left = [sampling_filters.typical(logits, mass).isfinite() for mass in (1e-300, 1e-17, 1e-9)]
    assert torch.equal(left[0], left[2])
    assert torch.equal(left[1], left[2])


def test_where_every_token_would_be_left_out_the_best_stays():
    logits = torch.tensor([[0.1, 0.7, 0.3], [0.5, 0.2, 0.9]], dtype=torch.float64)
    left = sampling_filters.no_repeat_ngram(logits, 1, [[0, 1, 2], [0, 1, 0]]).isfinite()
    assert left.tolist() == [[False, True, False], [False, False, True]]


def test_a_penalty_for_repetition_counts_a_token_once_and_heeds_the_sign():
    logits = torch.tensor([[3.0, -3.0, 0.0, 2.0, -math.inf]], dtype=torch.float64)
    found = sampling_filters.repetition_penalty(logits, 2.0, [[0, 0, 1, 2, 4]])
    assert found.tolist() == [[1.5, -6.0, 0.0, 2.0, -math.inf]]
