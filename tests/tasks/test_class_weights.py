"""Weights of classes: what the numbers are, and that no result depends on batches, accumulation or processes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from every_task import RECIPES
from heedful.config.rules import WITH_CLASSES
from heedful.config.schema import Recipe
from heedful.distributed.reducer import SINGLE_PROCESS
from heedful.errors import InputError
from heedful.losses import label_cross_entropy, soft_label_cross_entropy
from heedful.tasks import TASKS
from heedful.training.training_step import TrainingStep
from several_processes import in_processes

CPU = torch.device("cpu")


def weighted(recipe: Recipe, weights: object) -> Recipe:
    train = replace(recipe.train, class_weights=weights, label_smoothing=0.1)
    model = replace(recipe.model, dropout=0.0)
    return replace(recipe, train=train, model=model, image=replace(recipe.image, mixup=0.0))


@pytest.fixture(params=WITH_CLASSES)
def recipe(request, tmp_path) -> Recipe:
    (tmp_path / "data").mkdir()
    return RECIPES[request.param](tmp_path / "data")


@pytest.fixture
def task(recipe, tmp_path):
    return TASKS[recipe.task].prepare(weighted(recipe, "balanced"), tmp_path / "prepared", lambda _: None)


def targets(task) -> list[int]:
    """The class of each training example or word."""
    found = []
    for ids in task.data.epoch(0):
        batch = task.data.batch(ids, 0, CPU)
        if hasattr(batch, "shares"):
            found += batch.shares.argmax(-1).tolist()
        elif task.recipe.task == "tagging":
            found += [tag - 1 for tag in batch.targets.flatten().tolist() if tag]
        else:
            found += batch.targets[:, 0].tolist()
    return found


def test_balanced_weights_let_each_class_count_alike(task):
    weights, counts = task.recipe.train.class_weights, Counter(targets(task))
    assert list(weights) == list(task.recipe.data.labels)
    each = [weights[task.recipe.data.labels[number]] * count for number, count in counts.items()]
    assert each == pytest.approx([sum(counts.values()) / len(counts)] * len(counts))
    assert sum(each) == pytest.approx(sum(counts.values()))  # so that their mean is 1


def test_corpora_count_by_their_weights(tmp_path):
    recipe = RECIPES["classification"](tmp_path / "data")
    train = (*recipe.data.train, replace(recipe.data.valid, weight=2.0))
    recipe = replace(weighted(recipe, "balanced"), data=replace(recipe.data, train=train))
    task = TASKS["classification"].prepare(recipe, tmp_path / "prepared", lambda _: None)
    counts = Counter(targets(task))
    weights = task.recipe.train.class_weights
    assert isinstance(weights, dict)
    numbers = [weights[label] for label in task.recipe.data.labels]
    assert [numbers[number] * count for number, count in counts.items()] == pytest.approx(
        [sum(counts.values()) / 3] * 3
    )


def test_the_table_is_kept_with_the_model_and_stays_as_it_is(task):
    assert TASKS[task.recipe.task].dataset.reader.resolve(task.recipe) == task.recipe
    label = task.recipe.data.labels[1]
    own = TASKS[task.recipe.task].dataset.reader.resolve(weighted(task.recipe, {label: 3.5}))
    assert own.train.class_weights == dict.fromkeys(task.recipe.data.labels, 1.0) | {label: 3.5}


def test_a_weight_for_what_is_not_a_class_is_refused(recipe):
    with pytest.raises(InputError, match=r"train\.class_weights lists 'gnu', but the classes are "):
        TASKS[recipe.task].dataset.reader.resolve(weighted(recipe, {"gnu": 2.0}))


def built(task):
    torch.manual_seed(0)
    return task.build(task.recipe, task.tokenizers)


def gradient(task, parts: list[np.ndarray], reducer=SINGLE_PROCESS, model=None) -> tuple[list[torch.Tensor], float]:
    """The gradient of an update whose examples are cut into batches, and its loss."""
    learner = TrainingStep(model or built(task), task.loss, task.recipe, reducer)
    learner.step = max  # leave the gradient where it is
    own = list(reducer.shard(reducer.pad_to_world_size(parts)))
    update = learner.update([task.data.batch(part, 0, CPU) for part in own], 1, len(parts))
    return [p.grad for p in learner.model.parameters() if p.grad is not None], update.losses[0] / update.counts[0]


def close(first, second) -> None:
    assert first[1] == pytest.approx(second[1], rel=1e-5)
    assert len(first[0]) == len(second[0]) > 15
    for one, other in zip(first[0], second[0], strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_batches_accumulation_and_processes_change_nothing(task):
    ids = np.arange(11)
    parts = [ids[:1], ids[1:8], ids[8:]]
    whole = gradient(task, [ids])
    close(whole, gradient(task, parts))
    learners = [built(task) for _ in range(2)]  # one after another, as they draw from the same generator
    for own in in_processes(2, lambda reducer: gradient(task, parts, reducer, learners[reducer.rank])):
        close(whole, own)


def test_the_loss_weighs_each_example_by_its_class():
    torch.manual_seed(1)
    logits, target, weights = torch.randn(13, 5), torch.randint(5, (13,)), torch.rand(5) + 0.1
    for smoothing in (0.0, 0.3):
        each = F.cross_entropy(logits, target, label_smoothing=smoothing, reduction="none")
        loss = label_cross_entropy(logits, target, smoothing, weights)
        assert loss.sum.item() == pytest.approx(
            sum(weights[t].item() * x.item() for t, x in zip(target, each, strict=True))
        )
        assert (loss.nll, loss.count) == (label_cross_entropy(logits, target).nll, 13)
        shares = F.one_hot(target, 5).float()
        assert soft_label_cross_entropy(logits, shares, smoothing, weights).sum.item() == pytest.approx(loss.sum.item())
        plain = soft_label_cross_entropy(logits, shares, smoothing, torch.ones(5))
        torch.testing.assert_close(plain.sum, soft_label_cross_entropy(logits, shares, smoothing).sum)


def test_balanced_weights_make_a_rare_class_as_likely_as_others():

    logits = torch.zeros(2, requires_grad=True)
    target = torch.tensor([0] * 90 + [1] * 10)
    loss = label_cross_entropy(logits.expand(100, 2), target, 0.0, torch.tensor([100 / 180, 100 / 20]))
    loss.sum.backward()
    torch.testing.assert_close(logits.grad, torch.zeros(2), atol=1e-5, rtol=0)
