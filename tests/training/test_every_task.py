"""Properties of every task in the loop: runs go on to the same bits, and several processes find the scores of one."""

import pytest
import torch

from every_task import RECIPES
from heedful.tasks import TASKS, find_task
from resumed import check_resumes_exactly
from several_processes import validated


@pytest.fixture(params=RECIPES)
def recipe(request, tmp_path):
    (tmp_path / "data").mkdir()
    return RECIPES[request.param](tmp_path / "data")


def test_every_task_that_comes_with_heedful_is_tested():
    assert RECIPES.keys() == TASKS.keys()


@pytest.mark.sampled(5)
def test_a_run_that_is_interrupted_equals_a_whole_run_bit_for_bit(recipe, tmp_path, monkeypatch):
    check_resumes_exactly(recipe, tmp_path, monkeypatch)


@pytest.mark.sampled(5)
def test_several_processes_validate_exactly_as_one(recipe, tmp_path):
    task = find_task(recipe.task).prepare(recipe, tmp_path / "prepared", lambda _: None)
    torch.manual_seed(3)
    model = task.build(task.recipe, task.tokenizers).eval()
    with torch.no_grad():
        results = task.evaluate(model)
    alone = results and results.scores
    assert alone is None if recipe.data.valid is None else set() < alone.keys() <= set(task.spec.metrics)
    for processes in (2, 3):
        assert validated(task, model, processes) == [alone] * processes
