"""A system for any task is measured by the scores of that task."""

import math
from pathlib import Path

import pytest
from rich.console import Console

import toy_captions
from heedful.checkpoint import load_model
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.tools.compare import comparison
from heedful.tools.compare.job import Job, Result
from heedful.tools.compare.measure import work
from heedful.tools.compare.setup import Budget, parse_systems
from heedful.tools.compare.statistics import sample_of
from heedful.training import loop
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
    check_scores(settings, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("task", toy_captions.TASKS)
def test_the_scores_of_captions_and_transcripts_are_those_of_the_task(task, tmp_path):
    files = toy_captions.write_table(task, tmp_path / "files")
    check_scores(toy_captions.recipe(task, files, train={"max_updates": 2, "validate_every": 2}), tmp_path)


def check_scores(settings, tmp_path):
    """Train and measure a system, and hold its scores to those of `heedful evaluate`."""
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
    assert (sample is None) == (settings.task in WITHOUT_EXAMPLES)
    if sample:
        assert {name: one.value for name, one in sample.intervals().items()}.items() <= wanted.items()
    assert min(result.measured.flops_per_example, result.measured.flops_per_update, result.measured.test.tokens) > 0


def test_classifiers_of_other_classes_are_not_compared(text, tmp_path, monkeypatch):
    plain = recipe("classification", text, train={"max_updates": 1})
    labels = find_task("classification").dataset.reader.resolve(plain).data.labels
    for name, own in (("a", labels), ("b", labels[::-1])):
        settings = recipe("classification", text, train={"max_updates": 1}, data={"labels": list(own)})
        loop.train(settings, tmp_path / name, Console(quiet=True))
    monkeypatch.setattr(comparison, "run_process", lambda _: (3, None))
    systems = parse_systems([str(tmp_path / "a"), str(tmp_path / "b")], [])
    refusal = f"b: its classes are {', '.join(labels[::-1])}, but those of a are {', '.join(labels)}; compare"
    with pytest.raises(InputError, match=refusal):
        comparison.ComparisonRun(systems, Budget(), tmp_path / "out", None, lambda _: None).run()
