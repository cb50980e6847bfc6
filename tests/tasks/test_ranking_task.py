"""Ranking: the loss and the scores by their definitions, and sentence encoders that learn."""

import math

import numpy as np
import pytest
import torch

from heedful.architectures import SentenceEncoder, weights
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.losses import contrastive_loss
from heedful.metrics.bootstrap import example_scores
from heedful.tasks.parts.texts import number_distinct
from heedful.tasks.ranking import TEMPERATURE, Ranking, retrieval
from heedful.tasks.specs import output_metrics
from heedful.training.training_step import TrainingStep
from matching import learned, matching, recipe, write_matching, write_rows

CPU = torch.device("cpu")


def prepared(folder):
    settings = recipe(folder, task="ranking", model={"family": "encoder"})
    return Ranking.prepare(settings, folder / "prepared", str)


def loss_by_hand(scores, answers, smoothing):
    total = 0.0
    for own, row in enumerate(scores):
        candidates = [j for j in range(len(row)) if j == own or not answers[own][j]]
        log_sum = math.log(sum(math.exp(row[j]) for j in candidates))
        nlls = {j: log_sum - row[j] for j in candidates}
        total += (1 - smoothing) * nlls[own] + smoothing * sum(nlls.values()) / len(nlls)
    return total


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_equals_its_definition(smoothing):
    scores = torch.randn(7, 7, dtype=torch.float64)
    answers = torch.eye(7, dtype=torch.bool)
    answers[1, 4] = answers[4, 1] = answers[0, 6] = True
    found = contrastive_loss(scores, answers, smoothing)
    assert found.sum.item() == pytest.approx(loss_by_hand(scores.tolist(), answers.tolist(), smoothing))
    assert found.nll.item() == pytest.approx(loss_by_hand(scores.tolist(), answers.tolist(), 0.0))
    assert found.count == 7


def test_what_answers_a_query_is_no_negative_of_it(tmp_path):
    pairs = [("q1", "a1"), ("q2", "a2"), ("q1", "a3"), ("q4", "a2"), ("q5", "a5"), ("q2", "a3")]
    write_rows(tmp_path / "train.tsv", pairs)
    write_rows(tmp_path / "valid.tsv", pairs)
    task = prepared(tmp_path)
    batch = task.data.batch(np.arange(6), 0, CPU)
    expected = [[(query, answer) in pairs for _, answer in pairs] for query, _ in pairs]
    assert batch.answers.tolist() == expected
    assert batch.tokens == 2 * 6 * 3  # <bos>, a word and <eos>
    assert number_distinct([(5, 3, 0), (5, 3, 0), (5, 3, 3)]).tolist() == [0, 0, 1]


def vector(model, texts, row):
    return model(*(part[row : row + 1] for part in (texts.ids, texts.padding_mask, texts.segments)))[0]


def test_the_loss_of_a_batch_is_that_of_cosines_over_the_temperature(tmp_path):
    write_matching(tmp_path)
    task = prepared(tmp_path)
    model = task.build(task.recipe, task.tokenizers).eval()
    batch = task.data.batch(np.arange(11), 0, CPU)
    x, y = ([vector(model, texts, i) for i in range(11)] for texts in (batch.queries, batch.passages))
    cosines = [[(a @ b / a.norm() / b.norm() / TEMPERATURE).item() for b in y] for a in x]
    [found] = task.loss(model, batch)
    assert found.sum.item() == pytest.approx(loss_by_hand(cosines, batch.answers.tolist(), 0.0), rel=1e-4)


def test_accumulated_batches_have_the_gradient_of_their_mean(tmp_path):
    write_matching(tmp_path)
    task = prepared(tmp_path)
    torch.manual_seed(3)
    learner = TrainingStep(task.build(task.recipe, task.tokenizers), task.loss, task.recipe)
    batches = [task.data.batch(ids, 0, CPU) for ids in (np.arange(3), np.arange(3, 10))]
    for number, batch in enumerate(batches):
        learner.backward(batch, (1, number), [10])
    found = [parameter.grad.clone() for parameter in learner.model.parameters()]
    learner.optimizer.zero_grad()
    (sum(task.loss(learner.model, batch)[0].sum for batch in batches) / 10).backward()
    for ours, parameter in zip(found, learner.model.parameters(), strict=True):
        torch.testing.assert_close(ours, parameter.grad)


def scores_of(rankings):
    whole = example_scores(rankings, output_metrics(Ranking.spec, Recipe())).whole
    assert whole is not None
    return whole


def test_scores_are_those_of_the_places_of_right_passages():
    rng = np.random.default_rng(5)
    queries, passages = rng.normal(size=(23, 5)), rng.normal(size=(17, 5))
    answers = [set(rng.choice(17, rng.integers(1, 4), replace=False).tolist()) for _ in range(23)]
    found = scores_of(retrieval(queries, passages, answers))
    sums = dict.fromkeys(found, 0.0)
    for query, right in zip(queries, answers, strict=True):
        order = sorted(range(17), key=lambda j: -(query @ passages[j]))
        places = sorted(order.index(j) + 1 for j in right)
        sums["mrr"] += 1 / places[0]
        sums["recall@1"] += sum(place <= 1 for place in places) / len(places)
        sums["recall@10"] += sum(place <= 10 for place in places) / len(places)
        best = sum(1 / math.log2(place + 1) for place in range(1, len(places) + 1))
        sums["ndcg@10"] += sum(1 / math.log2(place + 1) for place in places if place <= 10) / best
    assert found == pytest.approx({name: total / 23 for name, total in sums.items()})


def test_queries_are_ranked_a_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(7)
    queries, passages = rng.normal(size=(11, 5)), rng.normal(size=(13, 5))
    answers = [{int(place)} for place in rng.integers(0, 13, 11)]
    whole = scores_of(retrieval(queries, passages, answers))
    monkeypatch.setattr("heedful.tasks.ranking.QUERIES_AT_ONCE", 3)
    assert scores_of(retrieval(queries, passages, answers)) == pytest.approx(whole)


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_an_encoder_learns_which_passage_belongs_to_a_query(family, tmp_path):
    write_matching(tmp_path)
    scores = learned(recipe(tmp_path, task="ranking", model={"family": family}), tmp_path / "run")
    assert list(scores) == ["update", *Ranking.spec.metrics]
    assert scores["mrr"] > 0.9
    assert scores["loss"] < 0.5


def test_an_equal_query_is_ranked_once_with_all_its_passages(tmp_path):
    rows = [("q1", "a1"), ("q1", "a2"), ("q3", "a1"), ("q1", "a1")]
    write_rows(tmp_path / "train.tsv", matching(11, 1))
    write_rows(tmp_path / "valid.tsv", rows)
    task = prepared(tmp_path)
    model = task.build(task.recipe, task.tokenizers).eval()
    scores = task.evaluate(model).scores
    assert scores["recall@10"] == 1.0  # both passages are right for one query, one of them for the other
    assert scores["recall@1"] in (0.25, 0.75)  # half of two passages, and nothing or all of one


def test_a_model_is_its_trunk_and_takes_the_mean_unless_told_otherwise():
    config = {"family": "encoder", "d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1}
    model = SentenceEncoder(ModelConfig(**config), 19).eval()
    assert all(name.startswith("backbone.") for name in weights(model))
    ids = torch.tensor([[2, 7, 11, 3, 0], [2, 5, 13, 17, 3]])
    padding_mask, segments = ids != 0, torch.zeros_like(ids)
    states = model.backbone(ids, padding_mask, segments)
    mean = torch.stack([states[0, :4].mean(0), states[1].mean(0)])
    torch.testing.assert_close(model(ids, padding_mask, segments), mean / mean.norm(dim=-1, keepdim=True))
    torch.manual_seed(1)
    first = SentenceEncoder(ModelConfig(**config, pooling="first"), 19).eval()
    first.load_state_dict(model.state_dict())
    torch.testing.assert_close(
        first(ids, padding_mask, segments), states[:, 0] / states[:, 0].norm(dim=-1, keepdim=True)
    )


def test_pairs_without_a_text_are_left_out_and_counted(tmp_path):
    write_rows(tmp_path / "train.tsv", [("q1", "a1"), ("", "a2"), ("q3", " "), ("q4", "a4")])
    write_rows(tmp_path / "valid.tsv", [("q1", "a1")])
    task = prepared(tmp_path)
    assert len(task.data.examples.train[0]) == 2
    assert task.data.examples.report.counts == {"empty source": 1, "empty target": 1}


def test_a_long_text_loses_its_end(tmp_path):
    write_rows(tmp_path / "train.tsv", [("q1 " * 23, "a1"), ("q2", "a2 " * 19)])
    write_rows(tmp_path / "valid.tsv", [("q1", "a1")])
    assert prepared(tmp_path).data.examples.train[0].lengths.tolist() == [[11, 3], [3, 11]]


def test_a_translator_cannot_rank(tmp_path):
    write_matching(tmp_path)
    with pytest.raises(InputError, match=r'task = "ranking" needs model\.family = "encoder" or "decoder"'):
        learned(recipe(tmp_path, task="ranking"), tmp_path / "run")


def test_both_sides_count_in_the_size_of_a_batch(tmp_path):
    write_rows(tmp_path / "train.tsv", [(f"q{i}", f"a{i} " * 9) for i in range(97)])
    write_rows(tmp_path / "valid.tsv", [("q1", "a1")])
    task = prepared(tmp_path)
    sizes = [task.data.batch(ids, 0, CPU).passages.ids.numel() for ids in task.data.epoch(0)]
    assert sum(sizes) == 97 * 11
    assert max(sizes) == 242  # 22 rows of 11 tokens; 251 are allowed
