"""Classification and regression: what the numbers are made of, and that nothing old is taken for new."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.errors import InputError
from heedful.predictors.classifier import Classifier
from heedful.predictors.text_predictor import Text
from heedful.tasks import TASKS
from heedful.tasks.regression import Regression, numbers
from heedful.tasks.task import ALONE
from heedful.text.tokenizer import BOS, EOS
from heedful.training.training_step import TrainingStep
from toy_tasks import recipe, write_text

CPU = torch.device("cpu")
LABELS = ("blue", "green", "red")


def prepared(name, folder, **tables):
    settings = recipe(name, write_text(folder / "text"), **tables)
    return TASKS[name].prepare(settings, folder / "data", lambda _: None)


@pytest.fixture(params=["classification", "regression"])
def task(request, tmp_path):
    return prepared(request.param, tmp_path)


def built(task):
    torch.manual_seed(0)
    return task.build(task.recipe, task.tokenizers).eval()


def lines(task, name="train") -> list[list[str]]:
    with open(f"{task.recipe.data.root}/{name}.tsv", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def outputs(task, model, name="valid") -> tuple[np.ndarray, list[list[str]]]:
    """What the model says of each example, one at a time and in float64."""
    encode, rows = task.tokenizers.source.encode, lines(task, name)
    model, found = model.double(), []
    for row in rows:
        ids = [BOS, *encode(row[0]), EOS]
        second = [*encode(row[2]), EOS] if isinstance(task, Regression) else []
        tokens = torch.tensor([ids + second])
        parts = torch.tensor([[0] * len(ids) + [1] * len(second)])
        found.append(model(tokens, torch.ones_like(tokens, dtype=torch.bool), parts)[0].tolist())
    model.float()
    return np.array(found), rows


@torch.no_grad()
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_of_a_class_is_its_cross_entropy(tmp_path, smoothing):
    task = prepared("classification", tmp_path, train={"label_smoothing": smoothing})
    model = built(task)
    logits, rows = outputs(task, model)
    losses = np.log(np.exp(logits).sum(1, keepdims=True)) - logits
    nll = losses[range(len(rows)), [LABELS.index(row[1]) for row in rows]]
    got = [task.loss(model, batch)[0] for batch in ALONE.batches(task.data, model)]
    assert sum(loss.nll.item() for loss in got) == pytest.approx(nll.sum(), rel=1e-5)
    want = ((1 - smoothing) * nll + smoothing * losses.mean(1)).sum()
    assert sum(loss.sum.item() for loss in got) == pytest.approx(want, rel=1e-5)
    assert sum(loss.count for loss in got) == len(rows)


@torch.no_grad()
def test_the_scores_of_a_classifier_are_those_of_its_decisions(tmp_path):
    task = prepared("classification", tmp_path)
    model = built(task)
    logits, rows = outputs(task, model)
    right = [LABELS[place] == row[1] for place, row in zip(logits.argmax(1), rows, strict=True)]
    scores = task.evaluate(model).scores
    assert scores["accuracy"] == sum(right) / len(rows)
    assert set(scores) == {"loss", "accuracy", "macro_f1", "matthews"}


@torch.no_grad()
def test_outcomes_are_in_the_order_of_the_file_whatever_the_batches_are(tmp_path):
    task = prepared("classification", tmp_path)
    model = built(task)
    logits, rows = outputs(task, model)
    found = task.evaluate(model).outcomes
    right = [LABELS[place] == row[1] for place, row in zip(logits.argmax(1), rows, strict=True)]
    assert found.count == len(rows)
    assert [found.measure(np.array([i]))["accuracy"] for i in range(len(rows))] == right


@torch.no_grad()
def test_the_loss_of_a_number_is_its_squared_error(tmp_path):
    task = prepared("regression", tmp_path)
    model = built(task)
    found, rows = outputs(task, model)
    mean, scale = task.recipe.data.label_mean, task.recipe.data.label_scale
    assert mean is not None
    assert scale is not None
    found = found * scale + mean
    errors = found[:, 0] - [float(row[3]) for row in rows]
    scores = task.evaluate(model).scores
    assert scores["loss"] == pytest.approx((errors**2).mean(), rel=1e-5)
    assert scores["rmse"] == pytest.approx((errors**2).mean() ** 0.5, rel=1e-5)
    expected = np.array([float(row[3]) for row in rows])
    assert scores["pearson"] == pytest.approx(np.corrcoef(found[:, 0], expected)[0, 1], abs=1e-4)


@torch.no_grad()
def test_a_model_that_says_the_same_of_all_has_no_correlation_and_that_counts_as_none(tmp_path):
    task = prepared("regression", tmp_path)
    model = built(task)
    torch.nn.init.zeros_(model.output.weight)
    scores = task.evaluate(model).scores
    assert (scores["spearman"], scores["pearson"]) == (0.0, 0.0)


def test_numbers_come_back_to_the_last_bit():
    given = np.array([0.1, -2.75, 0.0, -0.0, 3.4e38, -1e-45, 5.0, 65536.0], "<f4")
    halves = torch.from_numpy(given.view("<u2").reshape(-1, 2).astype(np.int64))
    assert numbers(halves).numpy().tobytes() == given.tobytes()


def test_uneven_batches_accumulate_to_the_gradient_of_one(task):
    settings = replace(task.recipe, model=replace(task.recipe.model, dropout=0.0))
    ids, gradients = np.arange(11), []
    for parts in ([ids], [ids[:1], ids[1:8], ids[8:]]):
        torch.manual_seed(0)
        learner = TrainingStep(task.build(settings, task.tokenizers), task.loss, settings)
        learner.step = max  # leave the gradient where it is
        learner.update([task.data.batch(part, 0, CPU) for part in parts], 1)
        gradients.append([parameter.grad for parameter in learner.model.parameters() if parameter.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 20
    for whole, cut in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, cut, atol=1e-6, rtol=1e-4)


def test_an_epoch_shows_each_example_once_with_its_target(task):
    seen = sorted(int(i) for ids in task.data.epoch(3) for i in ids)
    rows = lines(task)
    assert seen == [*range(len(rows))]
    batch = task.data.batch(np.array([5, 0, 7]), 3, CPU)
    if isinstance(task, Regression):
        assert numbers(batch.targets).tolist() == [float(rows[i][3]) for i in (5, 0, 7)]
    else:
        assert batch.targets[:, 0].tolist() == [LABELS.index(rows[i][1]) for i in (5, 0, 7)]
    assert (batch.counts, batch.tokens) == ((3,), int(batch.padding_mask.sum()))


def test_classes_are_found_and_kept_with_the_model(tmp_path):
    task = prepared("classification", tmp_path)
    assert task.recipe.data.labels == LABELS
    model = built(task)
    write_model(tmp_path / "model", task.recipe, task.tokenizers, weights(model))
    loaded = load_model(tmp_path / "model")
    assert loaded.recipe.data.labels == LABELS
    classifier = loaded.use_as(Classifier)
    logits, rows = outputs(task, model)
    found = list(classifier.predict(Text(row[0]) for row in rows))
    assert [answer.label for answer in found] == [LABELS[i] for i in logits.argmax(1)]
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose([list(a.probabilities.values()) for a in found], shares, atol=1e-5)
    assert list(found[0].probabilities) == list(LABELS)


def test_classes_that_are_named_keep_their_order(tmp_path):
    task = prepared("classification", tmp_path, data={"labels": ["red", "blue", "green", "black"]})
    assert task.recipe.data.labels == ("red", "blue", "green", "black")
    assert built(task).output.out_features == 4


def test_a_class_that_is_none_is_told_with_its_line(tmp_path):
    with pytest.raises(
        InputError, match=r"train\.tsv, line \d+: the label 'red' is not in data.labels \(green, blue\); fix it"
    ):
        prepared("classification", tmp_path, data={"labels": ["green", "blue"]})


def test_a_longer_limit_is_not_answered_with_what_was_cut_before(tmp_path):
    lengths = {}
    for limit in (8, 17, 8):
        task = prepared("classification", tmp_path, data={"max_length": limit})
        lengths.setdefault(limit, []).append(int(task.data.examples.train[0].lengths[:, 0].max()))
    assert lengths == {8: [8, 8], 17: [10]}


def test_what_was_prepared_is_used_again(tmp_path):
    settings, told = recipe("regression", write_text(tmp_path / "text")), []
    for _ in range(2):
        TASKS["regression"].prepare(settings, tmp_path / "data", told.append)
    assert [line for line in told if "prepared earlier" in line] == told[-1:]
