import pytest
import torch

from heedful.nn.dropout import Dropout, dropout, keep_mask


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_are_dropped_at_the_rate_and_the_others_scaled(rate, dtype):
    torch.manual_seed(0)
    y = dropout(torch.ones(307, 311, dtype=dtype), rate)
    dropped = (y == 0).float()
    assert dropped.mean().item() == pytest.approx(rate, abs=0.006)
    assert y[y != 0].float().unique().tolist() == [pytest.approx(1 / (1 - rate), rel=1e-2)]
    assert dropped.mean(0).max() < rate + 0.12
    assert dropped.mean(1).max() < rate + 0.12


def test_neighbouring_values_are_dropped_independently():
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(400_009), 0.5) == 0).float()
    for distance in (1, 2, 3, 4, 7):
        both = (dropped[distance:] * dropped[:-distance]).mean().item()
        assert both == pytest.approx(0.25, abs=0.005)


def test_a_mask_is_where_the_values_are():
    mask = keep_mask(torch.empty(13, 17, dtype=torch.bfloat16, device="meta"), 0.3)
    assert (mask.device.type, mask.dtype, mask.shape) == ("meta", torch.bfloat16, (13, 17))


def test_the_gradient_passes_where_the_value_did():
    x = torch.randn(13, 17, requires_grad=True)
    y = dropout(x, 0.3)
    (grad,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(grad * x, y)


def test_the_draw_is_decided_by_the_seed():
    x = torch.ones(101)
    torch.manual_seed(7)
    first = dropout(x, 0.5)
    second = dropout(x, 0.5)
    torch.manual_seed(7)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero():
    x = torch.ones(101)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


@pytest.mark.parametrize("rate", [0.99999, 1e-5])
def test_a_rate_near_zero_or_one_is_not_taken_for_it(rate):
    torch.manual_seed(0)
    x = torch.ones(1009, 1013)
    y = dropout(x, rate)
    assert y.isfinite().all()
    assert 0 < (y == 0).sum() < y.numel()
    assert y.mean().item() == pytest.approx(1, abs=0.4)
