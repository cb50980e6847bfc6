"""Workers that read batches ahead change no bit, end with their run, and leave signals and errors to it."""

import multiprocessing
import os
import pickle
import signal
import sys
from dataclasses import fields, is_dataclass, replace
from itertools import islice

import numpy as np
import pytest
import torch

from every_task import RECIPES
from heedful.distributed.reducer import SINGLE_PROCESS
from heedful.tasks import find_task
from heedful.training import loop, trainer
from heedful.training.trainer import BatchReader, Trainer, upcoming_indices
from interrupted import train
from resumed import check_resumes_exactly
from reversal import fingerprint

CPU = torch.device("cpu")
READ_AHEAD = ("image_classification", "speech_recognition", "masked_patches", "image_text_retrieval", "translation")


@pytest.fixture
def prepared(tmp_path):
    """Prepared images."""
    recipe = RECIPES["image_classification"](tmp_path)
    return find_task(recipe.task).prepare(recipe, tmp_path / "prepared", lambda _: None).data


def with_workers(recipe, workers):
    return replace(recipe, train=replace(recipe.train, workers=workers))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", READ_AHEAD)
def test_a_run_with_workers_equals_one_without_bit_for_bit_and_so_does_one_that_goes_on(name, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    recipe = RECIPES[name](tmp_path / "data")
    train(with_workers(recipe, 0), tmp_path / "without")
    check_resumes_exactly(with_workers(recipe, 2), tmp_path, monkeypatch)
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "without")
    assert multiprocessing.active_children() == []


def test_batches_are_planned_through_all_epochs_from_where_a_run_stands():
    epochs = [[np.array([10 * epoch + batch]) for batch in range(5)] for epoch in range(4)]
    upcoming = upcoming_indices(epochs.__getitem__, SINGLE_PROCESS, 2, epoch=1, start=2)
    assert [(epoch, indices.tolist()) for epoch, indices in islice(upcoming, 9)] == [
        *((1, [12 + batch]) for batch in range(3)),
        *((2, [20 + batch]) for batch in range(5)),
        (3, [30]),
    ]


@pytest.mark.parametrize(
    ("device", "name", "asked", "workers"),
    [
        ("cuda", "image_classification", None, 6),
        ("cuda", "speech_recognition", None, 6),
        ("cuda", "translation", None, 0),
        ("cuda", "image_classification", 0, 0),
        ("cpu", "image_classification", None, 0),
        ("cpu", "translation", 3, 3),
    ],
)
def test_files_are_read_for_a_gpu_by_all_cores_but_one(device, name, asked, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "usable_cores", lambda: 7)
    recipe = with_workers(RECIPES[name](tmp_path), asked)
    data = find_task(name).prepare(recipe, tmp_path / "prepared", lambda _: None).data
    assert trainer.number_of_workers(data, torch.device(device)) == workers


@pytest.mark.parametrize(("asked", "workers"), [(None, 0), (0, 0), (3, 3)])
def test_a_system_that_cannot_copy_processes_has_only_the_workers_that_a_recipe_asks_for(
    asked, workers, prepared, monkeypatch
):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(prepared, "recipe", with_workers(prepared.recipe, asked))
    assert trainer.number_of_workers(prepared, torch.device("cuda")) == workers


def test_a_process_that_may_have_no_children_has_no_workers(prepared, monkeypatch):
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
    monkeypatch.setattr(prepared, "recipe", with_workers(prepared.recipe, 3))
    assert trainer.number_of_workers(prepared, torch.device("cuda")) == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", RECIPES)
def test_a_task_that_is_sent_to_another_process_reads_the_same_batches_from_its_folder(name, tmp_path):
    recipe = RECIPES[name](tmp_path)
    data = find_task(recipe.task).prepare(recipe, tmp_path / "prepared", lambda _: None).data
    here = BatchReader(data, CPU)
    there = pickle.loads(pickle.dumps(here))
    for ids in data.epoch(1)[:3]:
        assert all(map(torch.equal, tensors_of(here((1, ids))), tensors_of(there((1, ids)))))


def test_the_arrays_of_a_store_are_not_sent_but_opened_again(prepared):
    store = prepared.examples.train[0]
    sent = pickle.dumps(store)
    assert len(sent) < 500 + len(str(store.files[0].path))
    assert np.array_equal(pickle.loads(sent).contents, store.contents)


def tensors_of(value) -> list[torch.Tensor]:
    """All tensors of a batch."""
    if isinstance(value, torch.Tensor):
        return [value]
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    return [tensor for part in value for tensor in tensors_of(part)] if isinstance(value, list | tuple) else []


def test_a_run_that_is_left_by_an_error_leaves_no_worker_behind(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    recipe = with_workers(RECIPES["image_classification"](tmp_path / "data"), 2)
    monkeypatch.setattr(Trainer, "count", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(recipe, tmp_path / "run")
    assert multiprocessing.active_children() == []


def test_workers_leave_signals_to_the_run_which_saves_first(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    recipe = with_workers(RECIPES["image_classification"](tmp_path / "data"), 2)
    take = Trainer.update

    def stop_all(self):
        take(self)
        if self.state.update == 3:
            workers = multiprocessing.active_children()
            assert len(workers) == 2
            for process in (*(worker.pid for worker in workers), os.getpid()):
                os.kill(process, signal.SIGTERM)

    monkeypatch.setattr(Trainer, "update", stop_all)
    assert train(recipe, tmp_path / "run") == loop.Outcome(3, 143)
    assert multiprocessing.active_children() == []
