"""Draws follow the stated distribution, and belong to a seed and a step alone."""

import math

import numpy as np
import pytest
import torch
from plain_filters import distribution

from heedful.config.schema import GenerateConfig
from heedful.errors import RunError
from heedful.search.generation import GenerationRow
from heedful.search.sampling import draw, sample, uniform
from heedful.text.tokenizer import BOS, PAD

NEVER = [PAD, BOS]
DRAWS = 2503
LOGITS = np.random.default_rng(7).normal(size=13) * 1.5
CONFIGS = {
    "plain": {},
    "cold": {"temperature": 0.6},
    "hot": {"temperature": 1.8},
    "top-k": {"top_k": 5},
    "top-p": {"top_p": 0.8},
    "min-p": {"min_p": 0.1},
    "typical": {"typical": 0.7},
    "together": {"temperature": 1.4, "top_k": 7, "top_p": 0.9, "min_p": 0.06},
}


def most(freedom: int) -> float:
    """What a chi-square variable exceeds once in a thousand times (Wilson & Hilferty 1931)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + 3.09 * math.sqrt(spread)) ** 3


@pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)
def test_draws_follow_the_stated_distribution(settings):
    rows = [GenerationRow(GenerateConfig(seed=seed, **settings), [4]) for seed in range(DRAWS)]
    found, _ = sample(torch.from_numpy(LOGITS).expand(DRAWS, -1), rows, NEVER)
    counts = np.bincount(found.numpy(), minlength=len(LOGITS))
    expected = DRAWS * distribution(LOGITS, GenerateConfig(**settings), [4], [], NEVER)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < most(possible.sum() - 1)


def test_the_steps_of_one_seed_follow_it_too():
    chances = torch.tensor([uniform(11, step) for step in range(DRAWS)], dtype=torch.float64)
    logits = torch.from_numpy(LOGITS)
    counts = draw(logits.expand(DRAWS, -1), chances).bincount(minlength=13).double()
    expected = DRAWS * logits.softmax(0)
    assert ((counts - expected) ** 2 / expected).sum() < most(12)
    assert abs(np.corrcoef(chances[1:], chances[:-1])[0, 1]) < 3 / math.sqrt(DRAWS)


def test_chance_is_the_raw_output_of_philox():
    raw = int(np.random.Philox(np.random.SeedSequence((5, 3))).random_raw())
    assert uniform(5, 3) == (raw // 2**11) / 2**53
    assert len({uniform(seed, step) for seed in range(19) for step in range(23)}) == 19 * 23
    assert 0 <= uniform(10**40, 10**9) < 1


def test_a_draw_inverts_the_cumulative_distribution_by_id():
    logits = torch.tensor([0.25, 0.0, 0.5, 0.25, 0.0], dtype=torch.float64).log()
    chances = torch.tensor([0.0, 0.24, 0.25, 0.74, 0.75, 1 - 2.0**-53], dtype=torch.float64)
    assert draw(logits.expand(6, -1), chances).tolist() == [0, 0, 2, 2, 3, 3]


def test_a_score_is_what_the_model_gives_before_anything_is_narrowed():
    logits = torch.from_numpy(LOGITS).expand(17, -1)
    rows = [GenerationRow(GenerateConfig(seed=seed, temperature=0.5, top_k=3), []) for seed in range(17)]
    tokens, scores = sample(logits, rows, NEVER)
    expected = LOGITS - np.log(np.exp(LOGITS).sum())
    assert scores.tolist() == pytest.approx(expected[tokens.numpy()].tolist(), abs=1e-12)


def test_temperature_zero_takes_the_likeliest_whatever_the_seed():
    logits = torch.randn(7, 13)
    logits[:, NEVER] = 100.0
    rows = [GenerationRow(GenerateConfig(seed=seed, temperature=0.0, typical=0.3, top_p=0.5), []) for seed in range(7)]
    tokens, _ = sample(logits, rows, NEVER)
    logits[:, NEVER] = -100.0
    assert torch.equal(tokens, logits.argmax(1))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32, torch.float64])
def test_logits_of_every_type_are_drawn_from(kind):
    tokens, scores = sample(
        torch.zeros(3, 13, dtype=kind), [GenerationRow(GenerateConfig(seed=s), []) for s in range(3)], NEVER
    )
    assert scores.dtype == torch.float64
    assert scores.tolist() == pytest.approx([-math.log(13)] * 3)
    assert not set(tokens.tolist()) & set(NEVER)


def test_a_model_that_gives_nan_is_a_failure_with_a_message():
    with pytest.raises(RunError, match="not a number"):
        sample(torch.full((1, 13), math.nan), [GenerationRow(GenerateConfig(), [])], NEVER)
