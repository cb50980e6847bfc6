"""Training in float16: overflowing gradients are computed again with a smaller factor, and nothing else changes."""

from dataclasses import replace

import pytest
import torch
from toy_step import CPU, learner, rows

import reversal
from heedful.errors import InputError
from heedful.losses import Loss, cross_entropy
from heedful.machine import device as machine
from heedful.nn.attention import attend
from heedful.nn.masks import AttentionMask, attention_bias
from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.training import loop, loss_scale
from heedful.training.loss_scale import MAX_FACTOR, LossScale
from heedful.training.trainer_state import TrainerState
from resumed import check_resumes_exactly
from several_processes import in_processes

BATCHES = [collate(rows(3, 5, 2), rows(4, 2, 5), CPU), collate(rows(7, 2), rows(3, 5), CPU)]
TOO_LARGE = LossScale(MAX_FACTOR, 1)


def weights_of(step):
    return torch.cat([parameter.detach().flatten() for parameter in step.model.parameters()])


def in_half():
    return torch.autocast("cpu", torch.float16)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_updates_are_those_of_float32_but_for_rounding(norm):
    exact, half = (learner(precision, norm=norm) for precision in ("float32", "float16"))
    for number in (1, 2, 3):
        one, other = exact.update(BATCHES, number), half.update(BATCHES, number)
        assert other.losses == pytest.approx(one.losses, rel=5e-3)
        assert other.norm == pytest.approx(one.norm, rel=3e-2)
        assert one.losses != other.losses
    assert (exact.loss_scale, half.loss_scale) == (None, LossScale(2.0**16, 3))


def test_a_gradient_that_overflows_is_computed_again_and_gives_the_update_of_the_smaller_factor():
    step, small = (learner("float16", dropout=0.3, clip_norm=0.3) for _ in range(2))
    step.loss_scale = TOO_LARGE
    update = step.update(BATCHES, 1)
    assert update.finite
    assert update.loss_scale == step.loss_scale
    assert step.loss_scale.factor < MAX_FACTOR
    small.loss_scale = LossScale(step.loss_scale.factor)
    assert small.update(BATCHES, 1) == update
    assert torch.equal(weights_of(small), weights_of(step))


def test_a_batch_without_a_finite_gradient_leaves_weights_and_factor_unchanged():
    step = learner("float16")
    objective, before = step.objective, weights_of(step)

    def broken(model, batch):
        (term,) = objective(model, batch)
        return [Loss(term.sum * torch.nan, term.nll, term.count)]

    step.objective = broken
    assert not step.update(BATCHES, 1).finite
    assert torch.equal(weights_of(step), before)
    assert step.loss_scale == LossScale()
    step.objective = objective
    assert step.update(BATCHES, 2).finite


def test_the_factor_doubles_when_it_has_been_the_same_for_long(monkeypatch):
    monkeypatch.setattr(loss_scale, "PATIENCE", 2)
    step, factors = learner("float16"), []
    step.loss_scale = LossScale(8.0)
    for number in range(1, 6):
        step.update(BATCHES, number)
        factors.append(step.loss_scale.factor)
    assert factors == [8, 16, 16, 32, 32]
    assert LossScale(MAX_FACTOR, 1).after_update().factor == MAX_FACTOR
    assert LossScale(1.0).lowered() is None


def test_all_processes_lower_the_factor_if_a_gradient_overflows_in_one_of_them():
    alone = learner("float16")
    alone.loss_scale = TOO_LARGE
    expected = alone.update(BATCHES, 1)

    steps = [learner("float16") for _ in range(2)]

    def work(reducer):
        step = steps[reducer.rank]
        step.reducer, step.loss_scale = reducer, TOO_LARGE
        return step.update(list(reducer.shard(BATCHES)), 1), weights_of(step)

    (one, first), (other, second) = in_processes(2, work)
    assert one == other
    assert one.loss_scale == expected.loss_scale
    assert torch.equal(first, second)
    assert torch.allclose(first, weights_of(alone), atol=1e-4)


def test_a_run_that_is_interrupted_resumes_to_the_last_bit_with_its_factor(tmp_path, monkeypatch):
    reversal.write_texts(tmp_path)
    monkeypatch.setattr(loss_scale, "PATIENCE", 3)
    settings = reversal.recipe(tmp_path, train={"precision": "float16", "accumulate": 2, "max_updates": 7})
    check_resumes_exactly(settings, tmp_path, monkeypatch)
    assert '"loss_scale":' in (tmp_path / "whole" / "log.jsonl").read_text()


def test_a_state_keeps_its_factor_and_one_that_is_wrong_is_named():
    state = TrainerState(loss_scale=LossScale(8.0, 7)).to_json()
    assert TrainerState.from_json(state).loss_scale == LossScale(8.0, 7)
    with pytest.raises(ValueError, match="loss_scale is"):
        TrainerState.from_json({**state, "loss_scale": {"factor": 0.5, "updates": 7}})


def test_the_gradient_of_many_equal_hidden_states_does_not_overflow():
    hidden, weight = torch.full((4096, 8), 40.0), torch.zeros(2, 8, requires_grad=True)
    target = torch.zeros(4096, dtype=torch.long)
    with in_half():
        cross_entropy(hidden.requires_grad_(), weight, target, 0.0).sum.backward()
    assert weight.grad is not None
    assert weight.grad[:, 0].tolist() == [-81920, 81920]


def test_a_query_that_sees_nothing_stays_finite():
    q, k, v = torch.randn(3, 2, 1, 5, 8).unbind()
    padding_mask = torch.tensor([[True, True, True, False, False], [False] * 5])
    with in_half():
        bias = attention_bias(AttentionMask(padding_mask, 5, causal=True).allowed, q)
        assert bias.half().isfinite().all()
        assert attend(q, k, v, bias).isfinite().all()
        changed = torch.where(padding_mask[:, None, :, None], v, 7.0)
        assert torch.equal(attend(q, k, v, bias)[0], attend(q, k, changed, bias)[0])


def test_a_gpu_without_bfloat16_refuses_it_and_names_float16(monkeypatch):
    monkeypatch.setattr(machine, "lacks_bfloat16", lambda _: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla T4")
    gpu = torch.device("cuda")
    for precision in ("bfloat16", "autocast"):
        with pytest.raises(InputError, match=f'precision = "{precision}": Tesla T4 lacks .* "float16", or "float32"'):
            machine.check_precision(precision, gpu)
    machine.check_precision("float16", gpu)
    choice = machine.choose_precision(gpu)
    assert choice.precision == "float32"
    assert "float16" in choice.reason
    monkeypatch.undo()
    machine.check_precision("bfloat16", CPU)


@pytest.mark.parametrize(
    ("device", "remark"),
    [("cpu", "float16, which is for GPUs and slow on a CPU"), ("cuda", "float16, but a GPU computes bfloat16")],
)
def test_float16_gets_a_remark_where_another_precision_is_better(device, remark, tmp_path, monkeypatch):
    choice = machine.PrecisionChoice("bfloat16", "a GPU computes bfloat16")
    monkeypatch.setattr(loop, "choose_device", lambda _: torch.device(device))
    monkeypatch.setattr(loop, "choose_precision", lambda _: choice)
    said, settings = [], reversal.recipe(tmp_path)
    settings = replace(settings, train=replace(settings.train, precision="float16"))
    assert loop.decided_settings(settings, None, said.append)["precision"] == "float16"
    assert [line for line in said if remark in line]
