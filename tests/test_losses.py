import math

import pytest
import torch

from heedful import losses
from heedful.losses import (
    cross_entropy,
    label_cross_entropy,
    perplexity,
    reference_cross_entropy,
    soft_label_cross_entropy,
)
from heedful.machine.speed import count_flops


@pytest.fixture(autouse=True)
def few_logits_at_once(monkeypatch):
    monkeypatch.setitem(losses.LOGITS_AT_ONCE, "cpu", 23 * 10)  # 37 tokens: three chunks and a rest of 7 and 3 zeros
    monkeypatch.setattr(losses, "ROWS", 5)


def draw(dtype=torch.float32):
    torch.manual_seed(0)
    hidden = torch.randn(37, 11, dtype=dtype, requires_grad=True)
    weight = torch.randn(23, 11, dtype=dtype, requires_grad=True)
    return hidden, weight, torch.randint(0, 23, (37,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_fused_loss_and_its_gradients_equal_the_reference(smoothing):
    hidden, weight, target = draw()
    fused, reference = (f(hidden, weight, target, smoothing) for f in (cross_entropy, reference_cross_entropy))
    torch.testing.assert_close(fused.sum, reference.sum)
    torch.testing.assert_close(fused.nll, reference.nll)
    assert fused.count == reference.count == 37
    gradients = [torch.autograd.grad(loss.sum / 7, [hidden, weight]) for loss in (fused, reference)]
    torch.testing.assert_close(gradients[0], gradients[1])


def test_a_bias_of_the_output_is_learned_as_well():
    hidden, weight, target = draw()
    bias = torch.linspace(-1.0, 2.0, 23, requires_grad=True)
    fused, reference = (f(hidden, weight, target, 0.1, bias) for f in (cross_entropy, reference_cross_entropy))
    torch.testing.assert_close(fused.sum, reference.sum)
    torch.testing.assert_close(fused.nll, reference.nll)
    gradients = [torch.autograd.grad(loss.sum / 7, [hidden, weight, bias]) for loss in (fused, reference)]
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("biased", [False, True])
def test_without_gradients_the_loss_is_the_same_and_only_one_product_is_computed(biased):
    hidden, weight, target = draw()
    bias = torch.linspace(-1.0, 2.0, 23) if biased else None
    learned = cross_entropy(hidden, weight, target, 0.1, bias)
    with torch.no_grad():
        flops = count_flops(lambda: cross_entropy(hidden, weight, target, 0.1, bias))
        read = cross_entropy(hidden, weight, target, 0.1, bias)
    assert torch.equal(read.sum, learned.sum)
    assert torch.equal(read.nll, learned.nll)
    assert flops == 2 * 40 * 11 * 23  # logits of 37 tokens and 3 zeros


def test_the_gradient_equals_finite_differences():
    hidden, weight, target = draw()
    loss = cross_entropy(hidden, weight, target, 0.1).sum
    (grad,) = torch.autograd.grad(loss, hidden)
    step = torch.zeros_like(hidden)
    step[3, 5] = 1e-2
    with torch.no_grad():
        up, down = (
            reference_cross_entropy((hidden + sign * step).double(), weight.double(), target, 0.1).sum
            for sign in (1, -1)
        )
    assert grad[3, 5].item() == pytest.approx((up - down).item() / 2e-2, rel=1e-2)


def test_the_smoothed_loss_equals_the_formula():
    hidden, weight, target = draw()
    with torch.no_grad():
        log_p = (hidden @ weight.T).double().log_softmax(-1)
    smooth = torch.full((37, 23), 0.1 / 23, dtype=torch.float64)
    smooth[torch.arange(37), target] += 0.9
    got = cross_entropy(hidden, weight, target, 0.1)
    assert got.sum.item() == pytest.approx(-(smooth * log_p).sum().item(), rel=1e-5)
    assert got.nll.item() == pytest.approx(-log_p[torch.arange(37), target].sum().item(), rel=1e-5)


def test_bfloat16_is_near_float32():
    hidden, weight, target = draw()
    exact = cross_entropy(hidden, weight, target, 0.1).sum
    near = cross_entropy(hidden.bfloat16(), weight.bfloat16(), target, 0.1).sum
    assert near.dtype == torch.float32
    assert near.item() == pytest.approx(exact.item(), rel=2e-2)


def test_losses_add_up_over_batches():
    hidden, weight, target = draw()
    whole = cross_entropy(hidden, weight, target, 0.1)
    parts = [cross_entropy(hidden[s], weight, target[s], 0.1) for s in (slice(0, 13), slice(13, 37))]
    torch.testing.assert_close(parts[0].sum + parts[1].sum, whole.sum)
    assert parts[0].count + parts[1].count == whole.count


def test_a_uniform_guess_costs_the_logarithm_of_the_vocabulary():
    loss = cross_entropy(torch.zeros(7, 11), torch.zeros(23, 11), torch.arange(7), 0.1)
    assert loss.sum.item() == pytest.approx(7 * math.log(23))


def test_the_perplexity_of_a_run_that_diverges_is_still_a_number():
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert math.isfinite(perplexity(1e4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_hopeless_token_counts_87_nats_and_still_pulls_at_the_weights(dtype):
    hidden = torch.full((1, 3), 200.0, dtype=dtype, requires_grad=True)
    weight = torch.tensor([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], dtype=dtype)
    loss = cross_entropy(hidden, weight, torch.tensor([1]), 0.0)
    assert loss.nll.item() == pytest.approx(87.34, abs=0.5)
    (grad,) = torch.autograd.grad(loss.sum, hidden)
    assert torch.equal(grad, torch.full_like(grad, 2.0))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_whole_shares_cost_what_a_class_costs(smoothing):
    logits, target = torch.randn(11, 5), torch.randint(5, (11,))
    shares = torch.nn.functional.one_hot(target, 5).float()
    found, wanted = (
        f(logits, x, smoothing) for f, x in ((soft_label_cross_entropy, shares), (label_cross_entropy, target))
    )
    torch.testing.assert_close(found.sum, wanted.sum)
    torch.testing.assert_close(found.nll, wanted.nll)
    assert found.count == wanted.count == 11


def test_a_mixed_example_costs_the_shares_of_its_classes():
    logits, classes, share = torch.randn(7, 5, dtype=torch.float64), torch.randint(5, (2, 7)), torch.rand(7, 1)
    first, second = (torch.nn.functional.one_hot(x, 5).float() for x in classes)
    found = soft_label_cross_entropy(logits, torch.lerp(second, first, share), 0.1)
    costs = -logits.log_softmax(-1)
    mixed = share[:, 0] * costs[range(7), classes[0]] + (1 - share[:, 0]) * costs[range(7), classes[1]]
    torch.testing.assert_close(found.nll.double(), mixed.sum(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.sum.double(), (0.9 * mixed + 0.1 * costs.mean(1)).sum(), atol=1e-5, rtol=1e-5)
