"""Classification of images, audio and videos: losses, mixtures, chance that is a function of a key, whole runs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import heedful
from heedful.checkpoint import load_model
from heedful.config.load import make_recipe
from heedful.data.stores import MediaExample, MediaStore
from heedful.errors import InputError
from heedful.media.modality import Images
from heedful.tasks import TASKS as ALL
from heedful.tasks.parts.media import place_of
from heedful.text.tokenizer_pair import NoTokenizers
from heedful.training.preflight import preflight
from heedful.training.training_step import TrainingStep
from interrupted import stop_after, train
from toy_media import COUNTS, LABELS, TASKS, recipe, write_files

CPU = torch.device("cpu")
PICTURES, SOUNDS, VIDEOS = TASKS
PLAIN = {
    PICTURES: {"image": {"shift": 0, "flip": False, "mixup": 0.0}},
    SOUNDS: {"audio": {"speed": 0.0, "time_masks": 0}},
    VIDEOS: {"image": {"shift": 0, "mixup": 0.0}},
}


def prepared(name, folder, **tables):
    settings = recipe(name, write_files(name, folder / "files"), **tables)
    return ALL[name].prepare(settings, folder / "data", lambda _: None)


@pytest.fixture(params=TASKS)
def task(request, tmp_path):
    return prepared(request.param, tmp_path)


@pytest.fixture
def pictures(tmp_path):
    return prepared(PICTURES, tmp_path)


def built(task):
    torch.manual_seed(0)
    model = task.build(task.recipe, task.tokenizers).eval()
    torch.nn.init.normal_(model.output.weight)
    return model


def one_by_one(task, model, store) -> torch.Tensor:
    """The logits of each example of a store, read alone and without augmentation."""
    found = []
    for index in range(len(store)):
        rows = task.data.modality.features(task.data.modality.read(store.content(index)))[None]
        found.append(model(rows, torch.ones(1, rows.size(1), dtype=torch.bool))[0])
    return torch.stack(found)


def test_the_classes_are_those_of_the_training_files(task):
    labels = LABELS[task.recipe.task]
    assert task.recipe.data.labels == labels
    assert built(task).output.out_features == len(labels)


def test_an_epoch_shows_each_file_once_with_its_class(task):
    seen = sorted(int(i) for ids in task.data.epoch(3) for i in ids)
    assert seen == [*range(COUNTS["train"] * len(task.recipe.data.labels))]
    batch = task.data.read(task.data.examples.train, np.array([12, 0, 11]), None, CPU)
    assert batch.shares.argmax(1).tolist() == [1, 0, 1]
    assert (batch.shares.sum(1) == 1).all()
    _, real = built(task).backbone.embedding.embed(batch.inputs, batch.padding_mask)
    assert (batch.counts, batch.tokens) == ((3,), int(real.sum()))


@torch.no_grad()
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("name", TASKS)
def test_loss_and_scores_of_validation_are_those_of_each_file_alone(name, smoothing, tmp_path):
    task = prepared(name, tmp_path, train={"label_smoothing": smoothing})
    model, store = built(task), task.data.examples.valid
    logits = one_by_one(task, model, store).double()
    classes = torch.tensor([int(store.target(index)[0]) for index in range(len(store))])
    assert sorted(classes.tolist()) == classes.tolist()
    scores = task.evaluate(model).scores
    want = F.cross_entropy(logits, classes, label_smoothing=smoothing)
    assert scores["loss"] == pytest.approx(want.item(), rel=1e-5)
    right = logits.argmax(1) == classes
    assert scores["accuracy"] == pytest.approx(right.double().mean().item())
    outcomes = task.evaluate(model).outcomes
    assert [outcomes.measure(np.array([i]))["accuracy"] for i in range(len(store))] == right.tolist()


def test_nothing_is_random_in_validation_and_each_epoch_of_training_is_another(task):
    ids = np.array([5, 0, 7])
    train = task.data.examples.train
    batches = [task.data.read(train, ids, epoch, CPU).inputs for epoch in (None, None, 1, 1, 2)]
    assert torch.equal(batches[0], batches[1])
    assert torch.equal(batches[2], batches[3])
    assert not torch.equal(batches[0], batches[2][:, : batches[0].size(1)])
    assert batches[2].shape != batches[4].shape or not torch.equal(batches[2], batches[4])


@pytest.mark.parametrize("name", TASKS)
def test_without_augmentation_training_reads_what_validation_reads(name, tmp_path):
    task = prepared(name, tmp_path, **PLAIN[name])
    ids = np.arange(13)
    assert torch.equal(
        task.data.batch(ids, 3, CPU).inputs, task.data.read(task.data.examples.train, ids, None, CPU).inputs
    )


def test_another_seed_augments_otherwise(tmp_path):
    task = prepared(PICTURES, tmp_path)
    other = ALL[PICTURES].prepare(
        replace(task.recipe, train=replace(task.recipe.train, seed=2)), tmp_path / "data", lambda _: None
    )
    ids = np.arange(7)
    assert not torch.equal(task.data.batch(ids, 1, CPU).inputs, other.data.batch(ids, 1, CPU).inputs)


def test_what_an_example_looks_like_depends_on_no_other_in_its_batch(task):
    whole = task.data.batch(np.arange(13), 2, CPU)
    for place in (0, 5, 12):
        alone = task.data.batch(np.array([place]), 2, CPU)
        real = alone.padding_mask[0].sum()
        assert torch.equal(whole.inputs[place][:real], alone.inputs[0])
        assert torch.equal(whole.shares[place], alone.shares[0])
        assert whole.padding_mask[place].sum() == real


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_bit(task, threads, monkeypatch):
    wanted = task.data.batch(np.arange(13), 2, CPU)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = task.data.batch(np.arange(13), 2, CPU)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found.inputs, wanted.inputs)
    assert torch.equal(found.shares, wanted.shares)


def test_mixed_pictures_and_classes_are_shares_of_two(pictures):
    ids, epoch = np.arange(11), 3
    others, weights = pictures.data.partners(ids, epoch)
    train = pictures.data.examples.train
    first, _ = pictures.data.inputs(train, ids, epoch)
    second, _ = pictures.data.inputs(train, others, epoch)
    share = weights[:, None, None, None]
    batch = pictures.data.batch(ids, epoch, CPU)
    torch.testing.assert_close(batch.inputs, share * first + (1 - share) * second)
    for row, (one, other, weight) in enumerate(zip(ids, others, weights.tolist(), strict=True)):
        wanted = torch.zeros(3)
        wanted[one // 11] += weight
        wanted[other // 11] += 1 - weight
        torch.testing.assert_close(batch.shares[row], wanted)


def test_a_video_is_mixed_as_far_as_it_lasts(tmp_path):
    task = prepared(VIDEOS, tmp_path)
    ids, train = np.arange(13), task.data.examples.train
    others, weights = task.data.partners(ids, 3)
    batch = task.data.batch(ids, 3, CPU)
    lengths = set()
    for place in range(13):
        first, _ = task.data.inputs(train, ids[place : place + 1], 3)
        second, _ = task.data.inputs(train, others[place : place + 1], 3)
        frames, share = first.size(1), float(weights[place])
        wanted = share * first[0]
        wanted[: second.size(1)] += (1 - share) * second[0, :frames]
        torch.testing.assert_close(batch.inputs[place, :frames], wanted)
        assert batch.padding_mask[place].sum() == frames
        lengths.add((frames > second.size(1), frames < second.size(1)))
    assert len(lengths) == 3  # longer, shorter and equally long ones


def test_partners_are_a_function_of_seed_epoch_and_example(pictures):
    others, weights = pictures.data.partners(np.arange(11), 3)
    for ids in (np.array([7]), np.arange(11)[::-1].copy()):
        again, shares = pictures.data.partners(ids, 3)
        assert again.tolist() == others[ids].tolist()
        assert shares.tolist() == weights[ids.tolist()].tolist()
    assert pictures.data.partners(np.arange(11), 4)[0].tolist() != others.tolist()
    drawn = np.concatenate([pictures.data.partners(np.arange(33), epoch)[0] for epoch in range(40)])
    assert set(drawn.tolist()) == set(range(33))


def test_examples_are_numbered_through_the_stores(tmp_path):
    def store(name: str) -> MediaStore:
        examples = [MediaExample(letter.encode(), 1, [0]) for letter in name]
        return MediaStore.write(tmp_path / f"-{name}", examples, 29)

    stores = [store(name) for name in ("abc", "de", "f")]
    found = [place_of(stores, number) for number in range(6)]
    assert [chosen.content(index) for chosen, index in found] == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_several_corpora_are_read_by_their_weights(tmp_path):
    corpora = [{"source": "train", "weight": 1.0}, {"source": "valid", "weight": 2.0}]
    task = prepared(PICTURES, tmp_path, data={"train": corpora})
    counts = np.bincount(np.concatenate(task.data.epoch(1)), minlength=48)
    assert counts.tolist() == [1] * 33 + [2] * 15
    batch = task.data.read(task.data.examples.train, np.array([32, 33, 47]), None, CPU)
    assert batch.shares.argmax(1).tolist() == [2, 0, 2]


def test_uneven_batches_accumulate_to_the_gradient_of_one(task):
    settings = replace(task.recipe, model=replace(task.recipe.model, dropout=0.0))
    ids, gradients = np.arange(11), []
    for parts in ([ids], [ids[:1], ids[1:8], ids[8:]]):
        torch.manual_seed(0)
        learner = TrainingStep(task.build(settings, task.tokenizers), task.loss, settings)
        learner.step = max  # leave the gradient where it is
        learner.update([task.data.batch(part, 0, CPU) for part in parts], 1)
        gradients.append([parameter.grad for parameter in learner.model.parameters() if parameter.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 15
    for whole, cut in zip(*gradients, strict=True):
        torch.testing.assert_close(whole, cut, atol=1e-6, rtol=1e-4)


def test_a_run_does_not_go_on_with_other_pictures(tmp_path, monkeypatch):
    settings = recipe(PICTURES, write_files(PICTURES, tmp_path / "files"))
    with monkeypatch.context() as patch:
        stop_after(5, patch)
        train(settings, tmp_path / "run")
    with pytest.raises(InputError, match=r"image\.shift is 2, but the run was started with 3"):
        train(replace(settings, image=replace(settings.image, shift=2)), tmp_path / "run")
    (tmp_path / "files/train/left/00.png").unlink()
    with pytest.raises(InputError, match=r"the run cannot resume: its training or validation data has changed"):
        train(settings, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_what_can_be_seen_or_heard_is_learned(name, tmp_path):
    updates = 131 if name == VIDEOS else 67
    once = {"max_updates": updates, "validate_every": updates, "save_every": updates}
    settings = recipe(name, write_files(name, tmp_path / "files"), train=once, **PLAIN[name])
    train(settings, tmp_path / "run")
    scores = load_model(tmp_path / "run").test(replace(settings.data, test=settings.data.valid), print)
    assert scores["accuracy"] > 0.9
    files = sorted((tmp_path / "files/valid").rglob("*.*"))
    found = heedful.load(tmp_path / "run").predict(files)
    right = [answer.label == path.parent.name for answer, path in zip(found, files, strict=True)]
    assert sum(right) > 0.9 * len(files)


def test_a_class_that_is_none_is_told_before_anything_is_prepared(tmp_path):
    files = write_files(PICTURES, tmp_path / "files")
    (files / "valid/top").rename(files / "valid/tpo")
    message = r"valid/tpo/00.png: the label 'tpo' is not in data.labels \(left, right, top\); fix it"
    with pytest.raises(InputError, match=message):
        preflight(recipe(PICTURES, files))
    with pytest.raises(InputError, match=message):
        ALL[PICTURES].prepare(recipe(PICTURES, files), tmp_path / "data", lambda _: None)


def test_a_damaged_file_is_told_by_the_checks_before_a_run_unless_it_may_be_skipped(tmp_path):
    files = write_files(PICTURES, tmp_path / "files")
    (files / "train/right/05.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"train/right/05.png: not an image"):
        preflight(recipe(PICTURES, files))
    preflight(recipe(PICTURES, files, data={"bad_files": "skip"}))


def test_a_model_of_unknown_classes_is_not_built():
    settings = make_recipe({"task": PICTURES})
    with pytest.raises(InputError, match=r'the classes are unknown; list them: data.labels = \["..."'):
        ALL[PICTURES].build(settings, NoTokenizers())


def test_classes_that_are_named_keep_their_order(tmp_path):
    task = prepared(PICTURES, tmp_path, data={"labels": ["top", "bottom", "left", "right"]})
    assert task.recipe.data.labels == ("top", "bottom", "left", "right")
    assert isinstance(task.data.modality, Images)
    assert task.data.read(task.data.examples.train, np.array([0, 32]), None, CPU).shares.argmax(1).tolist() == [2, 0]
