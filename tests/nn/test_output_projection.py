"""Output projection: the way that is fast for few rows gives what a linear layer gives."""

import pytest
import torch
from torch import nn

from heedful.nn.embedding import MAX_BEAM_ROWS, OutputProjection


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", range(1, MAX_BEAM_ROWS + 3))
def test_any_number_of_rows_gives_the_logits_and_the_gradients_of_a_linear_layer(rows, bias):
    x = torch.randn(rows, 13, requires_grad=True)
    projection, linear = OutputProjection(13, 101, bias), nn.Linear(13, 101, bias)
    linear.load_state_dict(projection.state_dict())
    ours, reference = projection(x), linear(x)
    torch.testing.assert_close(ours, reference)
    assert ours.is_contiguous()
    towards = torch.randn(rows, 101)
    found = torch.autograd.grad(ours, [x, *projection.parameters()], towards)
    torch.testing.assert_close(found, torch.autograd.grad(reference, [x, *linear.parameters()], towards))


def test_only_the_few_rows_of_a_search_are_computed_as_columns(monkeypatch):
    computed = []
    monkeypatch.setattr(OutputProjection, "by_columns", lambda self, x: computed.append(len(x)) or x @ self.weight.T)
    projection = OutputProjection(13, 101, bias=False)
    for rows in range(MAX_BEAM_ROWS + 4):
        projection(torch.randn(rows, 13))
    projection(torch.randn(1, 5, 13))
    projection.bfloat16()(torch.randn(5, 13, dtype=torch.bfloat16))
    assert computed == list(range(2, MAX_BEAM_ROWS + 1))
