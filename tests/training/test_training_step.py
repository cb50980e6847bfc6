import pytest
import torch
from toy_step import CPU, learner, rows

from heedful.random_numbers import seed_of
from heedful.tasks.parts.sequence_to_sequence import collate
from several_processes import in_processes


def gradients(taught, batches):
    count = sum(batch.target_tokens for batch in batches)
    taught.precision.refresh()
    for number, batch in enumerate(batches):
        taught.backward(batch, (1, number), [count])
    return [parameter.grad for parameter in taught.model.parameters()]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_several_uneven_batches_have_the_gradient_of_one(norm):
    source, target = rows(7, 5, 3, 2, 2), rows(5, 7, 2, 3, 1)
    taught = [learner(norm=norm), learner(norm=norm)]
    whole = gradients(taught[0], [collate(source, target, CPU)])
    parts = gradients(taught[1], [collate(source[s], target[s], CPU) for s in (slice(0, 1), slice(1, 3), slice(3, 5))])
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_master_weights_keep_what_bfloat16_would_lose():
    taught = learner("bfloat16", lr=1e-5)
    before = [parameter.clone() for parameter in taught.model.parameters()]
    batch = collate(rows(7, 5), rows(5, 3), CPU)
    for number in range(1, 4):
        taught.update([batch], number)
    moved = [(a - b).abs().max().item() for a, b in zip(before, taught.model.parameters(), strict=True)]
    assert all(parameter.dtype == torch.float32 for parameter in taught.model.parameters())
    assert all(0 < distance < 1e-4 for distance in moved)


@pytest.mark.parametrize("precision", ["bfloat16", "autocast"])
def test_fewer_bits_give_nearly_the_same_gradient(precision):
    batch = collate(rows(7, 5, 3), rows(5, 3, 7), CPU)
    exact, near = (torch.cat([g.flatten() for g in gradients(learner(p), [batch])]) for p in ("float32", precision))
    assert near.dtype == torch.float32
    assert (near - exact).norm() < 0.03 * exact.norm()


def test_gradients_longer_than_the_limit_are_clipped_to_it():
    batch = collate(rows(7, 5), rows(5, 3), CPU)
    clipped, free = learner(clip_norm=0.01), learner()
    norms = []
    for taught in (clipped, free):
        taught.optimizer.register_step_pre_hook(
            lambda *_, model=taught.model: norms.append(
                torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).norm().item()
            )
        )
        update = taught.update([batch], 1)
        assert update.norm > 0.1
    assert norms[0] == pytest.approx(0.01, rel=1e-3)
    assert norms[1] == pytest.approx(update.norm, rel=1e-3)


def test_an_update_reports_sums_over_all_its_batches():
    batches = [collate(rows(7, 5), rows(5, 3), CPU), collate(rows(2), rows(3), CPU)]
    update = learner().update(batches, 1)
    assert (update.counts, update.tokens) == ([11], 25)
    assert update.losses[0] / 11 == pytest.approx(3.1, abs=1.0)
    assert update.finite


def test_dropout_depends_on_the_update_and_the_batch_only():
    batch = collate(rows(7, 5), rows(5, 3), CPU)
    first, again, later = learner(dropout=0.5), learner(dropout=0.5), learner(dropout=0.5)
    torch.rand(7)
    assert first.update([batch], 5) == again.update([batch], 5)
    assert later.update([batch], 6).losses != first.update([batch], 5).losses


def test_two_equal_batches_of_an_update_are_not_dropped_alike():
    batch = collate(rows(7, 5), rows(5, 3), CPU)
    taught, losses = learner(dropout=0.5), []
    honest = taught.objective

    def objective(model, batch):
        terms = honest(model, batch)
        losses.append(terms[0].sum.item())
        return terms

    taught.objective = objective
    taught.update([batch, batch], 1)
    assert losses[0] != losses[1]


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "autocast"])
def test_an_update_steps_on_the_gradient_of_all_its_batches(precision):
    source, target = rows(7, 5, 3, 2, 2), rows(5, 7, 2, 3, 1)
    parts = [collate(source[s], target[s], CPU) for s in (slice(0, 2), slice(2, 5))]
    whole, cut = (stepped_on(learner(precision), batches) for batches in ([collate(source, target, CPU)], parts))
    assert (whole - cut).norm() < 0.03 * whole.norm()


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "autocast"])
@pytest.mark.parametrize(("count", "processes"), [(2, 2), (1, 2), (3, 2), (5, 3)])
def test_several_processes_step_as_one_with_all_batches(precision, count, processes):
    batches = [collate(rows(7 - i, 5), rows(5, 3 + i), CPU) for i in range(count)]
    single = learner(precision)
    told = single.update(batches, 1)

    def work(reducer):
        taught[reducer.rank].reducer = reducer
        return taught[reducer.rank].update(list(reducer.shard(batches)), 1)

    taught = [learner(precision) for _ in range(processes)]
    found = in_processes(processes, work)
    for one, update in zip(taught, found, strict=True):
        assert (update.tokens, update.counts, update.lr) == (told.tokens, told.counts, told.lr)
        assert (update.losses, update.nlls) == (told.losses, told.nlls)
        assert update.norm == pytest.approx(told.norm, rel=0 if count <= 2 else 1e-5)
        for mine, wanted in zip(one.model.parameters(), single.model.parameters(), strict=True):
            torch.testing.assert_close(mine, wanted, atol=0 if count <= 2 else 1e-6, rtol=0 if count <= 2 else 1e-5)


def stepped_on(taught, batches):
    """The gradient that the optimizer gets in an update."""
    seen = []

    def look(*_):
        seen.append(torch.cat([parameter.grad.flatten() for parameter in taught.model.parameters()]))

    taught.optimizer.register_step_pre_hook(look)
    taught.update(batches, 1)
    return seen[0]


def test_seeds_are_a_function_of_their_key():
    assert seed_of(1, 2, 3) == seed_of(1, 2, 3)
    keys = [(s, u, b) for s in range(7) for u in range(11) for b in range(3)]
    assert len({seed_of(*key) for key in keys}) == len(keys)
