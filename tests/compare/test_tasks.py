"""A system for any task is measured by the scores of that task."""

import math
from pathlib import Path

import pytest
from rich.console import Console

from heedful.checkpoint import load_model
from heedful.compare.job import Job, Result
from heedful.compare.statistics import sample_of
from heedful.compare.work import work
from toy_tasks import TASKS, recipe, write_text

WITHOUT_EXAMPLES = {"language_model", "masked_lm"}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.mark.parametrize("task", TASKS)
def test_the_scores_are_those_of_the_task(task, text, tmp_path):
    settings = recipe(task, text, train={"max_updates": 2, "validate_every": 2})
    valid = settings.data.valid
    settings = recipe(task, text, train={"max_updates": 2, "validate_every": 2}, data={"test": vars(valid)})
    job = Job(settings, tmp_path / "run", tmp_path / "data", trains=True, result=tmp_path / "result.json")
    assert work(job, Console(quiet=True)) == 0
    result = Result.read(job.result)
    assert result.is_done(job)
    loaded = load_model(tmp_path / "run")
    wanted = loaded.test(loaded.recipe.data, lambda _: None)
    found = result.measured.test.scores
    assert found.keys() == wanted.keys()
    assert all(found[name] == wanted[name] or math.isnan(wanted[name]) for name in wanted)
    sample = sample_of(result.measured.test)
    assert (sample is None) == (task in WITHOUT_EXAMPLES)
    if sample:
        assert {name: one.value for name, one in sample.intervals().items()}.items() <= wanted.items()
    assert min(result.measured.flops_per_example, result.measured.flops_per_update, result.measured.test.tokens) > 0
