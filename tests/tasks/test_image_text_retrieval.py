"""Image-text retrieval: the loss and the scores by their definitions, learned, resumed, begun from another model."""

import math

import numpy as np
import pytest
import torch

from heedful.checkpoint import load_model
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.metrics.bootstrap import compare_scores, example_scores
from heedful.metrics.retrieval import connected
from heedful.predictors.image_text_retriever import ImageTextRetriever
from heedful.tasks.image_text_retrieval import ImageTextRetrieval, retrieval
from heedful.tasks.parts.texts import number_distinct
from heedful.tasks.specs import best_score_name, output_metrics
from interrupted import train
from toy_retrieval import COUNTS, TEXTS, recipe, write_tables

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("retrieval") / "data")


@pytest.fixture
def task(folder, tmp_path):
    return prepared(folder, tmp_path)


def prepared(folder, tmp_path, **tables) -> ImageTextRetrieval:
    return ImageTextRetrieval.prepare(recipe(folder, **tables), tmp_path / "prepared", lambda _: None)


def built(task):
    torch.manual_seed(3)
    return task.build(task.recipe, task.tokenizers).eval()


def cross_entropy(scores, answers, smoothing):
    """The mean over the rows, in float64 and one by one."""
    total = 0.0
    for own, row in enumerate(scores):
        candidates = [j for j in range(len(row)) if j == own or not answers[own][j]]
        log_sum = math.log(sum(math.exp(row[j]) for j in candidates))
        nlls = {j: log_sum - row[j] for j in candidates}
        total += (1 - smoothing) * nlls[own] + smoothing * sum(nlls.values()) / len(nlls)
    return total / len(scores)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@torch.no_grad()
def test_the_loss_is_the_mean_of_both_cross_entropies(folder, smoothing, tmp_path):
    task = prepared(folder, tmp_path, train={"label_smoothing": smoothing})
    model = built(task)
    batch = task.data.read(task.data.examples.train, np.arange(23), None, CPU)  # the first five texts are there twice
    pictures, texts = ([vectors(model, batch, i)[side].double() for i in range(23)] for side in (0, 1))
    scores = [[(a @ b).item() / 0.07 for b in texts] for a in pictures]
    equal = [[i % 18 == j % 18 for j in range(23)] for i in range(23)]
    columns = [list(column) for column in zip(*scores, strict=True)]
    [found] = task.loss(model, batch)
    wanted = (cross_entropy(scores, equal, smoothing) + cross_entropy(columns, equal, smoothing)) / 2
    assert found.sum.item() / found.count == pytest.approx(wanted, rel=1e-4)
    plain = (cross_entropy(scores, equal, 0.0) + cross_entropy(columns, equal, 0.0)) / 2
    assert found.nll.item() / found.count == pytest.approx(plain, rel=1e-4)
    assert batch.counts == (found.count,) == (23,)


def vectors(model, batch, i):
    """The vectors of one image and one text, alone and without padding."""
    length = int(batch.texts.padding_mask[i].sum())
    return (
        model.pictures(batch.images[[i]], batch.image_mask[[i]])[0],
        model.texts(batch.texts.ids[[i], :length], batch.texts.padding_mask[[i], :length])[0],
    )


def test_equal_texts_and_equal_pictures_are_no_negatives_of_each_other(task):
    store = task.data.examples.train[0]
    batch = task.data.read([store], np.array([0, 1, 18, 1, 4]), None, CPU)
    texts = [0, 1, 0, 1, 4]
    assert batch.matches.tolist() == [[a == b for b in texts] for a in texts]
    assert batch.tokens == 5 * 7 + 5 * 9  # class token and six patches; <bos>, seven words and <eos>
    assert task.tokenizers.source.decode(store.target(1).tolist()[1:-1]) == TEXTS[1]


def test_a_picture_with_two_texts_has_both_as_answers(folder, tmp_path):
    lines = [f"{place}\t{text}\n" for place in (0, 5) for text in (TEXTS[place], f"now {TEXTS[place]}")]
    table = "".join(f"files/train-{int(line.split(chr(9))[0]):03}.png\t{line.split(chr(9))[1]}" for line in lines)
    (folder / "twice.tsv").write_text(table)
    corpus = {"source": "twice.tsv", "source_field": "1", "target_field": "2"}
    task = prepared(folder, tmp_path, data={"train": [corpus], "valid": corpus})
    batch = task.data.read(task.data.examples.train, np.arange(4), None, CPU)
    assert batch.matches.tolist() == [[i // 2 == j // 2 for j in range(4)] for i in range(4)]
    with torch.no_grad():
        outcomes = task.evaluate(built(task)).outcomes
    assert outcomes.count == 2
    assert outcomes.scores["text_recall@5"] == outcomes.scores["image_recall@5"] == 1.0


def test_equal_items_have_equal_numbers():
    assert number_distinct(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 0, 2, 1]


def test_scores_are_those_of_the_places_of_right_answers():
    rng = np.random.default_rng(5)
    pictures, texts = (rng.normal(size=(29, 7)).astype(np.float32) for _ in range(2))
    of_pictures, of_texts = (number_distinct(rng.integers(0, bound, 29).tolist()) for bound in (23, 11))
    matches = retrieval(pictures, texts, of_pictures, of_texts)
    found = example_scores(matches, output_metrics(ImageTextRetrieval.spec, Recipe())).whole
    assert found is not None
    wanted = {name: [] for name in found}
    for i in range(29):
        for name, x, y, own, other in (
            ("text", pictures, texts, of_pictures, of_texts),
            ("image", texts, pictures, of_texts, of_pictures),
        ):
            first = {kind: list(other).index(kind) for kind in set(other.tolist())}
            query = x[list(own).index(own[i])]
            order = sorted(first, key=lambda kind, query=query, y=y, first=first: -float(query @ y[first[kind]]))
            right = {other[j] for j in range(29) if own[j] == own[i]}
            place = min(order.index(kind) + 1 for kind in right)
            wanted[f"{name}_mrr"].append(1 / place)
            for k in (1, 5, 10):
                wanted[f"{name}_recall@{k}"].append(float(place <= k))
    wanted["mrr"] = (np.array(wanted["text_mrr"]) + np.array(wanted["image_mrr"])) / 2
    assert found == pytest.approx({name: float(np.mean(values)) for name, values in wanted.items()})


def test_pairs_that_share_a_side_are_in_one_group():
    assert connected(number_distinct("abcad"), number_distinct("uvwxw")).tolist() == [0, 1, 2, 0, 2]
    assert connected(number_distinct("abca"), number_distinct("uvvv")).tolist() == [0, 0, 0, 0]
    assert connected(np.arange(5), np.arange(5)).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("other_texts", [False, True])
def test_more_texts_of_the_same_pictures_make_no_difference_more_certain(other_texts):
    rng = np.random.default_rng(7)
    meanings = rng.normal(size=(60, 6)).astype(np.float32)
    systems = [meanings + rng.normal(size=meanings.shape).astype(np.float32) for _ in range(2)]

    def compared(repeats):
        pictures = np.repeat(np.arange(60), repeats)
        texts = np.arange(len(pictures)) if other_texts else pictures
        metrics = output_metrics(ImageTextRetrieval.spec, Recipe())
        matches = [retrieval(noisy[pictures], meanings[pictures], pictures, texts) for noisy in systems]
        found = [example_scores(outputs, metrics) for outputs in matches]
        assert [one.count for one in found] == [60, 60]
        return compare_scores(*found, samples=199)

    pairs = zip(compared(1), compared(4), strict=True)  # texts among more candidates are at other places
    alike = [(once, often) for once, often in pairs if not (other_texts and once.name.startswith(("text", "mrr")))]
    assert len(alike) == (4 if other_texts else 9)
    assert [once.p_value for once, _ in alike] == pytest.approx([often.p_value for _, often in alike])
    assert [once.system.interval for once, _ in alike] == pytest.approx([often.system.interval for _, often in alike])


@torch.no_grad()
def test_a_task_has_the_scores_that_it_names(task):
    scores = task.evaluate(built(task)).scores
    assert tuple(scores) == task.spec.metrics
    assert best_score_name(task.spec, task.recipe) == "mrr"
    assert tuple(task.evaluate(built(task)).outcomes.scores) == task.spec.metrics[:-1]


def test_without_validation_data_there_are_no_scores(folder, tmp_path):
    corpus = {"source": "train.jsonl", "source_field": "file", "target_field": "text"}
    task = prepared(folder, tmp_path, data={"train": [corpus], "valid": None})
    assert task.evaluate(built(task)) is None


def test_a_batch_holds_texts_of_all_lengths_and_no_more_than_its_size(folder, tmp_path):
    lines = [f"files/train-{number:03}.png\t{'a ' * (1 + number % 7)}\n" for number in range(COUNTS["train"])]
    (folder / "lengths.tsv").write_text("".join(lines))
    corpus = {"source": "lengths.tsv", "source_field": "1", "target_field": "2"}
    task = prepared(folder, tmp_path, data={"train": [corpus]})
    batches = [task.data.batch(ids, 0, CPU) for ids in task.data.epoch(0)]
    assert sorted(int(i) for ids in task.data.epoch(0) for i in ids) == list(range(COUNTS["train"]))
    for batch in batches[:2]:
        assert len(batch.matches) == 251 // 9  # the longest text has nine tokens, and an image seven positions
        assert len(set(batch.texts.padding_mask.sum(1).tolist())) > 3


def test_only_training_is_augmented_and_each_epoch_otherwise(task):
    stores, ids = task.data.examples.train, np.arange(5)
    plain, first, again, second = (task.data.read(stores, ids, epoch, CPU).images for epoch in (None, 0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, plain)


def test_a_long_text_loses_its_end_and_that_is_told(folder, tmp_path):
    told = []
    settings = recipe(folder, data={"max_length": 8})
    task = ImageTextRetrieval.prepare(settings, tmp_path / "prepared", told.append)
    assert told[-1] == "train.jsonl: 126 texts reach data.max_length = 8 tokens; longer ones are truncated"
    assert set(task.data.examples.train[0].lengths[:, 1].tolist()) == {8}
    assert task.data.examples.train[0].target(0).tolist()[-1] == 3


def test_another_length_of_texts_prepares_the_data_again(folder, tmp_path):
    for longest, found in ((8, 8), (11, 9)):
        task = prepared(folder, tmp_path, data={"max_length": longest})
        assert set(task.data.examples.train[0].lengths[:, 1].tolist()) == {found}


def test_accumulated_batches_have_the_gradient_of_their_mean(task):
    model = built(task)
    batches = [task.data.read(task.data.examples.train, ids, None, CPU) for ids in (np.arange(3), np.arange(3, 10))]
    terms: list[Loss] = [task.loss(model, batch)[0] for batch in batches]
    assert sum(term.count for term in terms) == 10
    (terms[0].sum + terms[1].sum).div(10).backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [True, False])
def test_a_model_learns_to_find_both_ways(folder, causal, tmp_path):
    plain = {"model": {"dropout": 0.0, "text_causal": causal}, "image": {"shift": 0}}
    settings = recipe(folder, train={"max_updates": 241, "validate_every": 80, "save_every": 80}, **plain)
    train(settings, tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    scores = loaded.test(settings.data, lambda _: None)
    assert scores["text_recall@1"] > 0.9
    assert scores["image_recall@1"] > 0.9
    assert scores["mrr"] > 0.95
    picture, retriever = folder / "files" / "valid-007.png", loaded.use_as(ImageTextRetriever)
    assert retriever.search(picture, TEXTS, k=1)[0].text == TEXTS[7]
    assert retriever.search(TEXTS[7], [folder / "files" / f"valid-{i:03}.png" for i in range(18)], 1)[0].number == 7


def test_a_run_can_begin_with_another_model(folder, tmp_path):
    train(recipe(folder), tmp_path / "first")
    start = {"start": str(tmp_path / "first"), "max_updates": 1}
    other = recipe(folder, train=start, optimizer={"lr": 1e-9})
    train(other, tmp_path / "second")
    before, after = (load_model(tmp_path / name).model for name in ("first", "second"))
    for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
        torch.testing.assert_close(new, old, atol=1e-6, rtol=0, msg=name)


def test_a_model_of_another_kind_is_refused(folder):
    with pytest.raises(InputError, match=r'set model\.architecture = "dual_encoder"'):
        recipe(folder, model={"architecture": "transformer"})
