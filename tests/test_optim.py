import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.architectures import LanguageModel
from heedful.config.schema import ModelConfig, OptimizerConfig
from heedful.optim import (
    OPTIMIZERS,
    build_optimizer,
    clip_gradients,
    coalesced,
    load_optimizer_tensors,
    optimizer_tensors,
    orthogonal,
)
from heedful.training.learning_rate import SCHEDULES, learning_rate


def rate(step, total=100_000, d_model=512, **changes):
    return learning_rate(OptimizerConfig(**changes), step, total, d_model)


@pytest.mark.parametrize(
    ("step", "d_model", "want"),
    [(1, 512, 1.7469e-7), (4000, 512, 6.9877e-4), (16_000, 512, 3.4939e-4), (4000, 1024, 4.9411e-4)],
)
def test_the_papers_schedule_has_the_papers_values(step, d_model, want):
    assert rate(step, d_model=d_model) == pytest.approx(want, rel=1e-4)


def test_the_papers_schedule_peaks_where_the_warm_up_ends():
    rates = [rate(step, warmup=97) for step in range(1, 400)]
    assert rates.index(max(rates)) + 1 == 97


@pytest.mark.parametrize(
    ("schedule", "step", "want"),
    [
        ("inverse_sqrt", 1, 0.005 / 2000),
        ("inverse_sqrt", 2000, 0.005),
        ("inverse_sqrt", 8000, 0.0025),
        ("cosine", 2000, 0.005),
        ("cosine", 5000, (0.005 + 0.001) / 2),
        ("cosine", 8000, 0.001),
        ("linear", 3500, 0.001 + 0.004 * 0.75),
        ("linear", 8000, 0.001),
        ("constant", 1000, 0.0025),
        ("constant", 7777, 0.005),
    ],
)
def test_schedules_pass_through_known_points(schedule, step, want):
    got = rate(step, 8000, schedule=schedule, lr=0.005, warmup=2000, min_lr=0.001)
    assert got == pytest.approx(want)


@pytest.mark.parametrize("schedule", sorted(set(SCHEDULES) - {"noam"}))
def test_schedules_work_without_warm_up(schedule):
    assert rate(1, 100, schedule=schedule, lr=0.5, warmup=0) == pytest.approx(0.5, rel=2e-2)
    assert math.isfinite(rate(1000, 100, schedule=schedule, lr=0.5, warmup=0))


def tiny():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))


def tiny_language_model():
    torch.manual_seed(0)
    return LanguageModel(
        ModelConfig(d_model=6, d_ff=7, heads=2, decoder_layers=1, positions="learned", dropout=0.0), 11
    )


def steps(model, optimizer, count):
    for i in range(count):
        torch.manual_seed(i)
        tokens = torch.randint(11, (3, 5))
        model(tokens, torch.ones_like(tokens, dtype=torch.bool)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_restored_optimizer_goes_on_bit_for_bit(name):
    config = OptimizerConfig(name=name, lr=0.01, weight_decay=0.1)
    whole, first, second = tiny_language_model(), tiny_language_model(), tiny_language_model()
    optimizers = [build_optimizer(config, model, torch.float32) for model in (whole, first, second)]
    steps(whole, optimizers[0], 5)
    steps(whole, optimizers[0], 5)
    steps(first, optimizers[1], 5)
    second.load_state_dict(first.state_dict())
    load_optimizer_tensors(optimizers[2], second, optimizer_tensors(optimizers[1], first))
    steps(second, optimizers[2], 5)
    for a, b in zip(whole.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_adam_equals_its_formula():
    model = nn.Linear(1, 1, bias=False)
    optimizer = build_optimizer(OptimizerConfig(lr=0.1), model, torch.float32)
    w, m, v = model.weight.item(), 0.0, 0.0
    for step in range(1, 4):
        model(torch.ones(1, 1)).square().sum().backward()
        gradient = 2 * w
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        w -= 0.1 * (m / (1 - 0.9**step)) / (math.sqrt(v / (1 - 0.98**step)) + 1e-9)
        optimizer.step()
        optimizer.zero_grad()
        assert model.weight.item() == pytest.approx(w, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 37, 11), (3, 11, 37), (2, 13, 13)])
def test_orthogonal_steps_keep_the_directions_and_level_the_singular_values(shape, dtype):
    torch.manual_seed(3)
    u, _, v = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    values = torch.linspace(1, 0.03, u.size(2))
    levelled = u.mT @ orthogonal(1e-3 * u * values @ v, dtype) @ v.mT
    diagonal = levelled.diagonal(dim1=1, dim2=2)
    assert diagonal.min() > 0.6
    assert diagonal.max() < 1.25
    assert (levelled - torch.diag_embed(diagonal)).abs().max() < 0.03


def test_muon_equals_its_formula_on_matrices_of_the_stack_and_adamw_elsewhere():
    muon, adamw = tiny_language_model(), tiny_language_model()
    config = OptimizerConfig(lr=0.01, weight_decay=0.1)
    optimizers = [
        build_optimizer(replace(config, name=name), m, torch.float32) for name, m in (("muon", muon), ("adamw", adamw))
    ]
    tokens = torch.randint(11, (3, 5))
    padding_mask = torch.ones_like(tokens, dtype=torch.bool)
    momenta = {}
    for _ in range(3):
        adamw.load_state_dict(muon.state_dict())
        before = {name: parameter.detach().clone() for name, parameter in muon.named_parameters()}
        for model in (muon, adamw):
            model(tokens, padding_mask).square().sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in muon.named_parameters()}
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        others = dict(adamw.named_parameters())
        for name, parameter in muon.named_parameters():
            if parameter.dim() == 2 and "blocks" in name:
                momenta[name] = 0.95 * momenta.get(name, 0) + 0.05 * gradients[name]
                [direction] = orthogonal((0.05 * gradients[name] + 0.95 * momenta[name])[None], torch.float32)
                step = 0.01 * 0.2 * math.sqrt(max(parameter.shape)) * direction
                torch.testing.assert_close(
                    parameter.detach(), before[name] * (1 - 0.01 * 0.1) - step, rtol=1e-4, atol=1e-6
                )
            else:
                assert torch.equal(parameter, others[name]), name
    assert len(momenta) == 6


def test_frozen_parameters_are_left_out():
    model = tiny()
    model[0].weight.requires_grad_(False)
    groups = build_optimizer(OptimizerConfig(), model, torch.float32).param_groups
    assert [len(group["params"]) for group in groups] == [1, 2]  # matrices, then biases


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_matrices_decay_and_biases_and_norms_do_not(name):
    """Without a gradient nothing but decay moves a weight, in AdamW by lr x decay of itself."""
    model = tiny_language_model()
    config = OptimizerConfig(name=name, lr=0.01, weight_decay=0.3)
    optimizer = build_optimizer(config, model, torch.float32)
    before = {key: parameter.detach().clone().uniform_(1, 2) for key, parameter in model.named_parameters()}
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(before[key])
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for key, parameter in model.named_parameters():
        if parameter.dim() == 1 or name == "row_sgd":  # which has no decay; recipes with one are refused
            assert torch.equal(parameter, before[key]), key
        elif name in ("adamw", "muon"):
            torch.testing.assert_close(parameter, before[key] * (1 - 0.01 * 0.3), msg=key)
        else:
            assert (parameter < before[key]).all(), key
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(before)


def sparse(rows, values, size=11):
    place = torch.tensor(rows)[None]
    return torch.sparse_coo_tensor(place, values, (size, values.size(1)), check_invariants=True)


@pytest.mark.parametrize("size", [11, 100_003])
def test_rows_that_come_several_times_are_summed(size):
    torch.manual_seed(3)
    rows = [*torch.randint(size, (97,)).tolist(), 5, 5, size - 1, 5]
    gradient = sparse(rows, torch.randn(101, 7), size)
    assert coalesced(gradient).is_coalesced()
    torch.testing.assert_close(coalesced(gradient).to_dense(), gradient.to_dense())
    dense = torch.randn(3, 5)
    assert coalesced(dense) is dense


def test_the_norm_of_a_sparse_gradient_is_that_of_the_dense_one_and_clipping_scales_both_alike():
    torch.manual_seed(3)
    tables = [nn.Parameter(torch.zeros(11, 7)) for _ in range(2)]
    tables[0].grad = sparse([5, 2, 5], torch.randn(3, 7))
    tables[1].grad = tables[0].grad.to_dense()
    norm = tables[1].grad.norm().item()
    assert clip_gradients(tables, math.inf) == pytest.approx(math.sqrt(2) * norm)
    clip_gradients(tables, 0.5)
    for table in tables:
        assert table.grad.to_dense().norm().item() == pytest.approx(math.sqrt(0.125), rel=1e-4)


def test_sgd_by_rows_makes_the_steps_of_single_predictions_together():
    torch.manual_seed(3)
    tables = [nn.Parameter(torch.zeros(11, 7)) for _ in range(2)]
    mean = torch.randn(3, 7)
    tables[0].grad = sparse([5, 2, 5], mean)
    tables[1].grad = tables[0].grad.to_dense()
    model = nn.ParameterList(tables)
    optimizer = build_optimizer(OptimizerConfig(name="row_sgd"), model, torch.float32)
    optimizer.param_groups[0] |= {"lr": 0.025, "count": 3}
    optimizer.step()
    want = torch.zeros(11, 7)
    want[5], want[2] = -0.025 * 3 * (mean[0] + mean[2]), -0.025 * 3 * mean[1]
    for table in tables:
        torch.testing.assert_close(table.detach(), want)


def test_the_step_of_a_frequent_word_has_a_largest_length():
    table = nn.Parameter(torch.zeros(11, 7))
    table.grad = sparse([5, 2], torch.tensor([[1000.0] * 7, [0.001] * 7]))
    optimizer = build_optimizer(OptimizerConfig(name="row_sgd"), nn.ParameterList([table]), torch.float32)
    optimizer.param_groups[0] |= {"lr": 0.5, "count": 1}
    optimizer.step()
    assert table[5].norm().item() == pytest.approx(0.5 * 16)
    torch.testing.assert_close(table[2].detach(), torch.full((7,), -0.0005))
