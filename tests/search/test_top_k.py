import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import RunError
from heedful.search.top_k import best_tokens, largest, top
from heedful.text.tokenizer import BOS, PAD


@given(rows=st.integers(1, 5), width=st.integers(1, 331), count=st.integers(1, 13), seed=st.integers(0, 999))
def test_the_largest_values_are_those_that_topk_finds(rows, width, count, seed):
    values = torch.randperm(rows * width, generator=torch.Generator().manual_seed(seed)).view(rows, width).float()
    expected = values.topk(min(count, width))
    for found in (largest(values, min(count, width)), top(values, min(count, width))):
        torch.testing.assert_close(found, tuple(expected), rtol=0, atol=0)


@given(rows=st.integers(1, 5), width=st.integers(1, 331), count=st.integers(1, 13), seed=st.integers(0, 999))
def test_equal_values_come_by_lower_index(rows, width, count, seed):
    values = torch.randint(7, (rows, width), generator=torch.Generator().manual_seed(seed)).float()
    best, index = top(values, min(count, width))
    for row, found, places in zip(values.tolist(), best.tolist(), index.tolist(), strict=True):
        expected = sorted(range(width), key=lambda i: (-row[i], i))[:count]
        assert places == expected
        assert found == [row[i] for i in expected]


def test_log_probabilities_are_those_of_the_whole_vocabulary():
    logits = torch.randn(3, 131) * 5
    values, tokens = best_tokens(logits, 5)
    assert values.dtype == torch.float64
    for row, found, chosen in zip(logits.double().tolist(), values.tolist(), tokens.tolist(), strict=True):
        total = math.fsum(math.exp(x) for x in row)
        assert found == pytest.approx([row[t] - math.log(total) for t in chosen], abs=1e-6)
        assert chosen == sorted((t for t in range(131) if t not in (PAD, BOS)), key=lambda t: -row[t])[:5]


def test_the_models_logits_are_left_as_they_were():
    logits = torch.randn(2, 17)
    before = logits.clone()
    best_tokens(logits, 3)
    assert torch.equal(logits, before)


def test_a_model_that_gives_nan_is_a_failure_with_a_message():
    logits = torch.zeros(3, 11)
    logits[1, 7] = math.nan
    with pytest.raises(RunError, match="not a number"):
        best_tokens(logits, 2)
