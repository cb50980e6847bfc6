"""Metrics by name: what each is computed from, its direction, and how it is resampled; those of the user's own."""

import sys
from types import ModuleType

import numpy as np
import pytest

from heedful.config.schema import EvaluateConfig, Recipe
from heedful.errors import InputError
from heedful.metrics.answers import Answers
from heedful.metrics.bootstrap import example_scores
from heedful.metrics.classes import Classes
from heedful.metrics.correlation import PredictedNumbers
from heedful.metrics.metric import LOSSES, Metric, find_metric, lower_is_better, names_of, per_example
from heedful.metrics.retrieval import Matches, Rankings
from heedful.metrics.spans import TaggedSentences
from heedful.metrics.texts import Texts
from heedful.registry import METRICS
from heedful.tasks.specs import SPECS, best_score_name, check_metrics, output_metrics, outputs_kind, score_names

RANKINGS = Rankings([np.array([0]), np.array([1, 3]), np.array([2]), np.array([0, 1])], 13)
OUTPUTS = {
    "texts": Texts(["a b c", "d e", "a f", "g h i j"], ["a b c", "e d", "a g", "g h i k"], "en"),
    "classes": Classes(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), ("no", "yes")),
    "tags": TaggedSentences(
        [["B-x", "O"], ["O"], ["B-x"], ["O"]], [["B-x", "O"], ["B-x"], ["B-x"], ["O"]], ("O", "B-x")
    ),
    "answers": Answers(["a", "b c", "d", ""], [["a"], ["b"], ["e"], []]),
    "numbers": PredictedNumbers(np.array([1.0, 2.0, 4.0, 3.0]), np.array([1.0, 3.0, 5.0, 2.0])),
    "rankings": RANKINGS,
    "matches": Matches(RANKINGS, RANKINGS, np.arange(4), np.arange(4)),
}
PROGRAMS = [f"def f(x: int):\n    return {value}" for value in ("x", "2 * x", "x + x", "-x")]
PROGRAM_OUTPUTS = Texts(PROGRAMS, [PROGRAMS[0], PROGRAMS[2], PROGRAMS[3], PROGRAMS[0]])
ALL = [(key.partition(".")[0], key.partition(".")[2]) for key in METRICS]


def outputs_of(kind, name):
    return PROGRAM_OUTPUTS if name == "passes_tests" else OUTPUTS[kind]


def outcomes(kind, *names):
    return example_scores(outputs_of(kind, names[0]), {name: find_metric(name, kind) for name in names})


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_the_score_of_a_resample_is_that_of_its_examples(kind, name):
    found, chosen = outcomes(kind, name), np.array([3, 0, 1, 0])
    if not find_metric(name, kind).resampled:
        assert (list(found.scores), list(found.whole)) == ([], [name])
        return
    assert found.whole == found.scores == found.measure(np.arange(found.count))
    if kind != "matches":  # whose examples are numbered anew
        alone = example_scores(outputs_of(kind, name).select(chosen), {name: find_metric(name, kind)})
        assert found.measure(chosen) == pytest.approx(alone.whole)


def test_every_score_of_every_task_is_a_metric_of_its_outputs_or_comes_with_its_objective():
    for task in SPECS.values():
        known = {*LOSSES, *(names_of(outputs_kind(task)) if task.predicts else ("accuracy", "next_sentence_accuracy"))}
        assert set(task.metrics) <= known, task


def test_lower_is_better_for_losses_and_rates_of_errors_however_a_score_is_written():
    lower = {name for _, name in ALL if lower_is_better(name)} | {name for name in LOSSES if lower_is_better(name)}
    assert lower == {*LOSSES, "wer", "cer", "ter", "invalid_trees"}
    assert lower_is_better("TER")
    assert not lower_is_better("a score that a task of one's own reports")


def test_an_unknown_metric_is_refused_with_the_nearest_of_the_same_outputs():
    with pytest.raises(InputError, match=r'unknown metric "blue" for texts; did you mean "bleu"\?'):
        find_metric("blue", "texts")
    with pytest.raises(InputError, match='unknown metric "bleu" for classes; did you mean "accuracy", '):
        find_metric("bleu", "classes")


@pytest.fixture
def own(monkeypatch):
    """A module of the user's own with metrics, which has been imported."""
    module = ModuleType("own_metrics")
    module.right = per_example(lambda classes: classes.predicted == classes.expected)
    module.missed = Metric(lambda classes: float(np.mean(classes.predicted < classes.expected)), lower_is_better=True)
    module.plain = len
    monkeypatch.setitem(sys.modules, "own_metrics", module)
    return module


def named(*metrics, task="classification"):
    return Recipe(task=task, evaluate=EvaluateConfig(metrics=metrics))


def test_a_metric_of_the_users_own_is_computed_and_resampled_as_heedfuls(own):
    recipe = named("own_metrics:right", "own_metrics:missed")
    found = example_scores(OUTPUTS["classes"], output_metrics(SPECS["classification"], recipe))
    assert found.whole == {"own_metrics:right": 0.75, "own_metrics:missed": 0.0}
    assert found.measure(np.array([2, 2, 0, 1]))["own_metrics:right"] == 0.5
    assert (lower_is_better("own_metrics:right"), lower_is_better("own_metrics:missed")) == (False, True)


def test_metrics_of_a_recipe_take_the_place_of_those_of_its_task_and_the_loss_stays(own):
    task, recipe = SPECS["classification"], named("matthews", "own_metrics:right")
    assert score_names(task, recipe) == ("matthews", "own_metrics:right", "loss")
    assert best_score_name(task, recipe) == "matthews"
    assert best_score_name(task, named()) == "accuracy"
    assert score_names(SPECS["dialogue"], named("bleu", task="dialogue")) == ("bleu", "perplexity", "loss")


@pytest.mark.parametrize("name", ["own_metrics:plain", "own_metrics:gone", "os:system"])
def test_only_a_metric_is_taken_from_a_module_that_a_model_folder_names(name, own):
    with pytest.raises(InputError, match=r"has no heedful\.metrics\.metric\.Metric"):
        check_metrics(SPECS["classification"], named(name))


def test_a_module_that_is_not_imported_is_left_alone():
    with pytest.raises(InputError, match="heedful does not import code named by a model folder"):
        check_metrics(SPECS["classification"], named("not_imported:metric"))


@pytest.mark.parametrize("task", ["language_model", "masked_lm", "word_vectors", "masked_patches"])
def test_a_task_whose_scores_come_with_its_objective_has_no_others(task):
    with pytest.raises(InputError, match=f'evaluate.metrics: task = "{task}" has only the scores loss'):
        check_metrics(SPECS[task], named("accuracy", task=task))
