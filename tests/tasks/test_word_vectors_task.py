import filecmp
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import heedful
from heedful.architectures.word2vec.data import huffman_codes, prepare_words
from heedful.architectures.word2vec.model import Word2Vec
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.load import make_recipe
from heedful.errors import InputError
from heedful.losses import cross_entropy
from heedful.tasks import find_task
from heedful.tasks.word_vectors import (
    WordStream,
    WordVectorTraining,
    hierarchical_softmax,
    negative_sampling,
    predictions,
)
from heedful.training.training_step import TrainingStep
from interrupted import stop_after, train
from toy_vectors import PEOPLE, toy_recipe

CPU = torch.device("cpu")
KINDS = ("skip_gram", "cbow")
FAST = {"lr": 0.1}  # a toy text is read for a few seconds only
OBJECTIVES = ("negative_sampling", "hierarchical_softmax", "softmax")
BEFORE = {"wo": [0.2, 0.1, -0.3], "ai": [-0.1, 0.5, 0.3], "chi": [0.4, -0.6, 0.2], "li": [-0.3, 0.2, 0.8]}
AFTER = {"wo": [0.25, 0.15, -0.35], "ai": [-0.05, 0.45, 0.4], "chi": [0.45, -0.55, 0.25], "li": [-0.3, 0.25, 0.85]}


def task_of(tmp_path, text=None, **tables):
    recipe = toy_recipe(tmp_path, text, **tables)
    return find_task(recipe.task).prepare(recipe, tmp_path / "data", lambda _: None)


def filled(task, dtype=torch.float64) -> Any:
    """A new model whose tables hold random numbers of some size."""
    torch.manual_seed(5)
    model = task.build(task.recipe, task.tokenizers).to(dtype)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model


def batch_of(task):
    return task.data.batch(task.data.epoch(0)[0], 0, CPU)


def plain_loss(model, batch, options):
    """The loss of negative sampling, word by word, as the formulas of the papers are."""
    total = torch.zeros((), dtype=torch.float64)
    for block in range(len(batch.words)):
        for i in range(batch.words.size(1)):
            around = batch.around[block][batch.in_window[block, :, i]]
            if not len(around):
                continue
            samples = model.output.weight[batch.samples[block]]
            share = options.negatives / len(samples)
            if options.kind == "skip_gram":
                hidden = model.embedding.weight[batch.words[block, i]]
                right, times = F.logsigmoid(model.output.weight[around] @ hidden).sum(), len(around)
            else:
                hidden = model.embedding.weight[around].mean(0)
                right, times = F.logsigmoid(model.output.weight[batch.words[block, i]] @ hidden), 1
            total = total - right - times * share * F.logsigmoid(-samples @ hidden).sum()
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradients_are_those_of_the_formula_word_by_word(kind, tmp_path):
    task = task_of(tmp_path, model={"kind": kind, "window": 3}, train={"batch_tokens": 64})
    model, batch = filled(task), batch_of(task)
    batch = replace(batch, sizes=batch.sizes.double())
    [loss] = task.loss(model, batch)
    loss.sum.backward()
    got = [weight.grad.to_dense() for weight in model.parameters()]
    want = plain_loss(model, batch, task.data.options)
    torch.testing.assert_close(loss.sum, want)
    torch.testing.assert_close(loss.nll, want.detach())
    for mine, theirs in zip(got, torch.autograd.grad(want, list(model.parameters())), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_full_softmax_is_torchs_cross_entropy_of_every_pair(kind, tmp_path):
    options = {"kind": kind, "objective": "softmax", "window": 2}
    task = task_of(tmp_path, model=options, train={"batch_tokens": 64})
    model, batch = filled(task), batch_of(task)
    hidden, targets = predictions(model, batch, task.data.options)
    want = F.cross_entropy(hidden @ model.output.weight.T, targets, reduction="sum")
    theirs = [gradient.to_dense() for gradient in torch.autograd.grad(want, list(model.parameters()))]
    [loss] = task.loss(model, batch)
    mine = [gradient.to_dense() for gradient in torch.autograd.grad(loss.sum, list(model.parameters()))]
    torch.testing.assert_close(loss.sum.double(), want, rtol=1e-5, atol=1e-5)  # it is added up in float32
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES[:2])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_differences(kind, objective, tmp_path):
    task = task_of(tmp_path, model={"kind": kind, "objective": objective, "window": 2}, train={"batch_tokens": 64})
    model, batch = filled(task), batch_of(task)
    if objective == "negative_sampling":
        batch = replace(batch, sizes=batch.sizes.double())
    task.loss(model, batch)[0].sum.backward()
    step = 1e-5
    for weight in model.parameters():
        gradient = weight.grad.to_dense() if weight.grad.is_sparse else weight.grad
        for place in [tuple(place) for place in torch.nonzero(gradient)[::31].tolist()]:
            sides = []
            for sign in (1, -1):
                with torch.no_grad():
                    weight[place] += sign * step
                    sides.append(task.loss(model, batch)[0].sum.double().item())
                    weight[place] -= sign * step
            assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(gradient[place].item(), rel=1e-6, abs=1e-6)


def plain_negative_sampling(hidden, weight, targets, predicted, noise):
    """Negative sampling by torch's own functions."""
    scores = F.embedding(targets, weight) @ hidden.mT
    positive, negative = scores.split([predicted.size(1), scores.size(1) - predicted.size(1)], dim=1)
    return (F.softplus(-positive) * predicted).sum() + (F.softplus(negative).sum(1) * noise).sum()


def test_the_fast_objective_is_the_reference():
    torch.manual_seed(3)
    hidden, weight = torch.randn(3, 7, 5, dtype=torch.float64), torch.randn(11, 5, dtype=torch.float64)
    targets, predicted, noise = (
        torch.randint(11, (3, 13)),
        torch.rand(3, 9, 7) < 0.3,
        torch.rand(3, 7, dtype=torch.float64),
    )
    hidden.requires_grad_()
    weight.requires_grad_()
    fast = negative_sampling(hidden, weight, targets, predicted, noise, int(predicted.sum()))
    plain = plain_negative_sampling(hidden, weight, targets, predicted, noise)
    torch.testing.assert_close(fast.sum, plain)
    mine = [grad.to_dense() for grad in torch.autograd.grad(fast.sum, [hidden, weight])]
    torch.testing.assert_close(mine, list(torch.autograd.grad(plain, [hidden, weight])))


def test_scores_too_large_for_float32_give_a_finite_loss_and_gradient():
    hidden = torch.full((1, 2, 3), 100.0, requires_grad=True)
    weight = torch.tensor([[-100.0] * 3, [100.0] * 3], requires_grad=True)
    predicted = torch.tensor([[[True, False]]])
    loss = negative_sampling(hidden, weight, torch.tensor([[0, 1]]), predicted, torch.ones(1, 2), 1)
    loss.sum.backward()
    assert math.isfinite(loss.sum.item())
    assert hidden.grad.isfinite().all()


def tables(vectors) -> Any:
    model = Word2Vec(Word2VecConfig(d_model=3), 4)
    for table in (model.embedding, model.output):
        table.weight.data = torch.tensor(list(vectors.values()))
    return model


def test_the_scores_of_the_worked_example_are_dot_products_and_their_probabilities_a_softmax():
    """ "I love eating pears": the scores as the source has them, and the softmax over its vocabulary of four words."""
    model = tables(BEFORE)
    ai = model(torch.tensor(1))
    scores = model.output.weight @ ai
    torch.testing.assert_close(scores[[0, 2]], torch.tensor([-0.06, -0.28]))
    want = torch.tensor([math.exp(score) for score in (-0.06, 0.35, -0.28, 0.37)])
    want /= want.sum()
    for word in range(4):
        loss = cross_entropy(ai[None], model.output.weight, torch.tensor([word]), 0.0)
        assert loss.sum.item() == pytest.approx(-math.log(want[word]), rel=1e-5)


def cosine(vectors, a, b):
    return float(np.dot(vectors[a], vectors[b]) / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]))


def test_the_tables_of_the_worked_example_do_not_show_what_it_says():
    """The source says that ai is nearer to chi than to li after training; its own numbers say the opposite."""
    assert cosine(AFTER, "ai", "chi") == pytest.approx(-0.374, abs=5e-4)
    assert cosine(AFTER, "ai", "li") == pytest.approx(0.827, abs=5e-4)
    distance = {pair: [math.dist(table["ai"], table[pair]) for table in (BEFORE, AFTER)] for pair in ("chi", "li")}
    assert distance["chi"] == pytest.approx([1.212, 1.128], abs=5e-4)
    assert distance["li"] == pytest.approx([0.616, 0.552], abs=5e-4)


def learned(tmp_path, text=None, **tables):
    model = {"d_model": 16, "window": 4, **tables.pop("model", {})}
    recipe = toy_recipe(tmp_path, text, model=model, **tables)
    return heedful.train(recipe, out=tmp_path / "run").predictor


def test_ai_is_nearer_to_chi_than_to_li_after_training(tmp_path):
    objects = ["li", "ping", "tao", "mian", "cai"]
    lines = [f"wo {verb} {thing}" for verb in ("ai", "chi") for thing in objects] + ["wo ai chi li"]
    few = {"max_updates": 150, "save_every": 150, "validate_every": 150}
    vectors = learned(tmp_path, "\n".join(lines * 40), train=few, optimizer=FAST)
    assert vectors.similarity("ai", "chi") > vectors.similarity("ai", "li")


def new_vectors(tmp_path):
    task = task_of(tmp_path, model={"d_model": 16, "window": 4})
    torch.manual_seed(1)
    return task.use(task.build(task.recipe, task.tokenizers), task.recipe, task.tokenizers)


LONG = {
    "train": {"max_updates": 400, "log_every": 50, "validate_every": 400, "save_every": 400},
    "optimizer": {"lr": 0.1},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_training_brings_words_of_one_use_together_and_others_apart(kind, objective, tmp_path):
    before = new_vectors(tmp_path)
    after = learned(tmp_path, model={"kind": kind, "objective": objective}, **LONG)
    near, far = ([vectors.similarity("eat", word) for vectors in (before, after)] for word in ("consume", "apple"))
    assert near[0] < 0.5
    assert near[1] > 0.8
    assert near[1] - near[0] > far[1] - far[0]
    assert after.nearest("eat")[0].word == "consume"


def test_a_list_of_words_a_line_each_has_nothing_to_predict(tmp_path):
    (tmp_path / "text.txt").write_text("one\ntwo\none\n")
    data = {"train": [{"source": "text.txt"}], "documents": "line"}
    recipe = make_recipe({"task": "word_vectors", "data": data}, data_root=tmp_path)
    with pytest.raises(InputError, match=r'no document in the text has two words .* set data\.documents = "file"'):
        find_task("word_vectors").prepare(recipe, tmp_path / "data", lambda _: None)


def test_king_minus_man_plus_woman_is_queen_on_the_toy_text(tmp_path):
    vectors = learned(tmp_path, **LONG)
    for plus, minus, other, want in [
        ("king", "man", "woman", "queen"),
        ("queen", "woman", "man", "king"),
        ("man", "king", "queen", "woman"),
        ("woman", "queen", "king", "man"),
    ]:
        assert vectors.analogy(plus, minus, other, 1)[0].word == want
    assert set(PEOPLE) <= set(vectors.space.words)


def test_a_mean_of_vectors_does_not_see_the_order_of_words(tmp_path):
    vectors = new_vectors(tmp_path)
    first, second, other = vectors.encode(["the ripe apple fell", "fell apple ripe the", "the ripe plum fell"])
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    np.testing.assert_array_equal(vectors.encode("nothing known"), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_holds_the_predictions_of_its_pairs(kind, tmp_path):
    options = {"kind": kind, "window": 2, "objective": "softmax"}
    task = task_of(tmp_path, model=options, train={"batch_tokens": 64})
    model, batch = filled(task), batch_of(task)
    hidden, targets = predictions(model, batch, task.data.options)
    assert batch.counts == (len(hidden),) == (len(targets),)
    if kind == "cbow":
        first = batch.words[batch.contexts[batch.centres == 0]]
        torch.testing.assert_close(hidden[0], model.embedding.weight[first].mean(0))


def test_hierarchical_softmax_is_a_distribution_over_the_words():
    counts = np.array([0, 7, 5, 3, 2, 1])
    torch.manual_seed(2)
    hidden, weight, tree = torch.randn(1, 3), torch.randn(6, 3), huffman_codes(counts)
    total = 0.0
    for word in np.flatnonzero(counts).tolist():
        path = (torch.from_numpy(part[[word]]) for part in tree)
        total += math.exp(-hierarchical_softmax(hidden, weight, *path).sum.item())
    assert total == pytest.approx(1.0)


def test_a_batch_split_in_two_trains_as_the_whole_one_where_nothing_is_shared(tmp_path):
    task = task_of(tmp_path, model={"objective": "hierarchical_softmax"}, train={"batch_tokens": 128})
    starts = task.data.epoch(0)[0]
    whole, halves = (filled(task, torch.float32) for _ in range(2))
    TrainingStep(whole, task.loss, task.recipe).update([task.data.batch(starts, 0, CPU)], 1)
    parts = [task.data.batch(starts[:1], 0, CPU), task.data.batch(starts[1:], 0, CPU)]
    TrainingStep(halves, task.loss, task.recipe).update(parts, 1)
    for mine, theirs in zip(whole.parameters(), halves.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subsample", [0.0, 1e-12], ids=["no context", "no word"])
def test_a_batch_without_a_prediction_changes_nothing(subsample, kind, objective, tmp_path):
    options = {"kind": kind, "objective": objective, "subsample": subsample}
    recipe = toy_recipe(tmp_path, text="alone\nbereft\n" * 19, model=options)
    words = prepare_words(recipe, recipe.model, tmp_path / "data", lambda _: None)
    task = WordVectorTraining(
        WordStream(recipe, words)
    )  # which `prepare` refuses, as no batch of this text has a prediction
    model, batch = filled(task, torch.float32), batch_of(task)
    before = [weight.clone() for weight in model.parameters()]
    update = TrainingStep(model, task.loss, task.recipe).update([batch], 1)
    assert update.counts == [0]
    assert update.losses == [0.0]
    for weight, old in zip(model.parameters(), before, strict=True):
        assert torch.equal(weight, old)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_run_that_was_killed_goes_on_bit_for_bit(objective, tmp_path, monkeypatch):
    recipe = toy_recipe(tmp_path, model={"objective": objective})
    train(recipe, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(8, patch)
        train(recipe, tmp_path / "parts")
    train(recipe, tmp_path / "parts")
    for name in ("log.jsonl", "model/model.safetensors"):
        assert filecmp.cmp(tmp_path / "whole" / name, tmp_path / "parts" / name, shallow=False)


def test_validation_gives_the_loss_of_text_that_is_not_learned_from(tmp_path):
    recipe = toy_recipe(tmp_path)
    recipe = replace(recipe, data=replace(recipe.data, valid=replace(recipe.data.train[0], part=(0.0, 0.3))))
    task = find_task(recipe.task).prepare(recipe, tmp_path / "data", lambda _: None)
    model = filled(task, torch.float32)
    assert task.evaluate(model) == task.evaluate(model)
    assert set(task.evaluate(model).scores) == {"loss"}
    assert task_of(tmp_path).evaluate(model) is None
