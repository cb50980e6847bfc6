from dataclasses import replace

import numpy as np
import pytest
import torch

import toy_tasks
from heedful.config.schema import TrainConfig
from heedful.errors import RunError
from heedful.training import startup_checks as fit
from heedful.training import trainer
from interrupted import train, train_aloud
from reversal import fingerprint, recipe, write_pairs


@pytest.fixture
def text(tmp_path):
    write_pairs(tmp_path, "train", 53, seed=1)
    write_pairs(tmp_path, "valid", 7, seed=2)
    return tmp_path


def test_the_largest_batch_is_tried_once_before_the_first_update_and_not_when_a_run_goes_on(text, monkeypatch):
    tried = []
    honest = fit.try_largest_batch

    def try_and_note(step, task, batches, device):
        tried.append(max(len(ids) * int(task._train_plan.lengths[ids].max()) for ids in batches))
        honest(step, task, batches, device)

    monkeypatch.setattr(trainer, "try_largest_batch", try_and_note)
    train(recipe(text, train={"max_updates": 3}), text / "run")
    assert len(tried) == 1
    assert tried[0] <= 61
    train(recipe(text, train={"max_updates": 5}), text / "run")
    assert len(tried) == 1


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_trying_it_changes_no_bit_of_the_result(precision, text, monkeypatch):
    settings = recipe(text, train={"max_updates": 5, "precision": precision})
    train(settings, text / "tried")
    monkeypatch.setattr(trainer, "try_largest_batch", lambda *_: None)
    train(settings, text / "untried")
    assert fingerprint(text / "tried")[0] == fingerprint(text / "untried")[0]


def test_a_batch_that_does_not_fit_ends_the_run_before_its_first_update(text, monkeypatch):
    from heedful.tasks.parts import sequence_to_sequence

    honest, updates = sequence_to_sequence.loss, []

    def loss(model, batch, smoothing):
        if batch.source.numel() > 40:
            raise torch.OutOfMemoryError("out of memory")
        return honest(model, batch, smoothing)

    monkeypatch.setattr(sequence_to_sequence, "loss", loss)
    monkeypatch.setattr(trainer.Trainer, "update", lambda *_: updates.append(1))
    with pytest.raises(RunError, match=r"out of memory for the largest batch, .*train\.batch_tokens=30 "):
        train(recipe(text), text / "run")
    assert updates == []


def test_of_batches_of_one_size_that_of_the_longest_examples_is_tried():
    class Task:
        def cells(self, ids):
            return 24

        def batch(self, ids, epoch, device):
            return ids

    class Step:
        recipe = recipe_of_nothing = None

        def rehearse(self, batch):
            self.tried = batch

    step = Step()
    step.recipe = type("Recipe", (), {"train": None})
    fit.try_largest_batch(step, Task(), [np.arange(8), np.arange(2), np.arange(4)], torch.device("cpu"))
    assert len(step.tried) == 2


def test_a_model_that_the_machine_cannot_hold_is_not_built(text, monkeypatch):
    settings = recipe(text)
    monkeypatch.setattr(fit, "count_parameters", lambda _: 10**15)
    with pytest.raises(RunError, match=r"1,000,000,000,000,000 parameters.*--set model\.d_model=8"):
        train(replace(settings), text / "run")


def test_other_errors_stay_what_they_are(text):
    with pytest.raises(RuntimeError, match="shapes"), fit.memory_errors(recipe(text).train, lambda: "nothing"):
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize(("accumulate", "batches", "said"), [(1, 1, True), (1, 2, False), (4, 4, True), (4, 5, False)])
def test_a_batch_that_holds_all_training_data_is_told_of(accumulate, batches, said):
    train_config = TrainConfig(batch_tokens=100_000, accumulate=accumulate)
    line = fit.whole_epoch_line(train_config, [np.arange(3)] * batches)
    assert bool(line) == said
    assert not said or f", {3 * batches} examples, because all of it fits into train.batch_tokens" in line


@pytest.mark.parametrize("task", ["language_model", "masked_lm", "classification", "regression"])
def test_training_with_a_batch_larger_than_the_text_says_so(task, tmp_path):
    folder = toy_tasks.write_text(tmp_path / "text")
    settings = toy_tasks.recipe(task, folder, train={"batch_tokens": 100_000, "max_updates": 2})
    _, screen = train_aloud(settings, tmp_path / "run")
    assert screen.count("each update reads all training data, ") == 1
