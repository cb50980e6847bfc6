"""Results of a comparison: every number in its report, gathered from the results and logs of the systems."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from heedful.config.keys import KEYS
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.metrics import Comparison, ScoreInterval
from heedful.tasks import find_task
from heedful.tasks.specs import score_names
from heedful.tools.compare.charts import Curves, read_curves
from heedful.tools.compare.job import Measured
from heedful.tools.compare.measure import reordering_distances
from heedful.tools.compare.setup import Budget
from heedful.tools.compare.statistics import Group, SampleOutputs, TextSample, choose_samples, group_scores, sample_of
from heedful.training.logger import VALID

NONE = "–"
DONE, FAILED, WAITING = "done", "failed", "waiting"  # states of a system
AXES = {"updates": "updates", "minutes": "minutes of training", "FLOPs": "FLOPs of training"}
DATA, TRAIN = KEYS.data, KEYS.train
UNREPORTED = (KEYS.name, DATA.root, DATA.test, DATA.train, DATA.valid, DATA.words, TRAIN.max_minutes, TRAIN.precision)


@dataclass(frozen=True)
class SystemReport:
    name: str
    source: str  # the recipe, or the folder of the trained model
    recipe: Recipe | None  # the recipe with the budget applied; None if it cannot be read
    state: str  # `DONE`, `FAILED`, or `WAITING` for its turn
    error: str | None = None  # for a system that failed, what happened
    measured: Measured | None = None
    curves: Curves | None = None
    # by name, the scores on the test set that can be resampled by example, with 95% intervals
    scores: dict[str, ScoreInterval] = field(default_factory=dict)
    # remarks on the training, such as why it ended; the report prints them after the system's name
    remarks: list[str] = field(default_factory=list)
    # True if it was trained on the data of the comparison; False also if its data is unknown
    shares_data: bool = True

    def to_json(self) -> dict[str, Any]:
        """Convert the numbers to JSON values; the texts stay in the system's result file."""
        measured = asdict(self.measured) if self.measured else {}
        test = measured.pop("test", {})
        curves = self.curves or Curves({}, [], None, None)
        return {
            **{key: getattr(self, key) for key in ("name", "source", "state", "error", "remarks", "shares_data")},
            **measured,
            "tokens_per_second": curves.tokens_per_second,
            "test": {key: test[key] for key in ("count", "seconds", "tokens", "scores")} if test else None,
            "intervals": {name: asdict(resampled) for name, resampled in self.scores.items()},
            "curves": {name: {axis: curves.against(axis, name) for axis in AXES} for name in curves.values},
        }


@dataclass(frozen=True)
class Pair:
    """Comparison of a system with an earlier one in the list: a paired bootstrap for each score."""

    baseline: str
    system: str
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Report:
    systems: list[SystemReport]  # in the order of the command line
    task: str
    test: str  # description of the test set
    budget: Budget
    score: str | None  # the name of the first score with intervals; None if no system has one so far
    curve: str  # the name of the validation score that is plotted, such as "valid_bleu"
    pairs: list[Pair]
    by_length: list[Group]  # scores by source length in tokens
    by_move: list[Group]  # scores by the distance that words move in translation, if the data has alignments
    first: list[SampleOutputs]  # the first sentences of the test set with all outputs
    different: list[SampleOutputs]  # the sentences on which systems differ most
    settings: dict[str, dict[str, str]]  # the settings in which the recipes differ, with the value for each system

    @property
    def done(self) -> list[SystemReport]:
        return [system for system in self.systems if system.state == DONE]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": 1,
            "task": self.task,
            "test": self.test,
            "budget": asdict(self.budget),
            "systems": [system.to_json() for system in self.systems],
            "comparisons": [asdict(pair) for pair in self.pairs],
            "by_length": [asdict(group) for group in self.by_length],
            "by_move": [asdict(group) for group in self.by_move],
            "samples": [asdict(sample) for sample in (*self.first, *self.different)],
            "settings": self.settings,
        }


def report_system(
    name: str,
    source: str,
    recipe: Recipe,
    measured: Measured,
    folder: Path,
    remarks: Sequence[str] = (),
    *,
    shares_data: bool = True,
) -> SystemReport:
    """Return the report of a trained and measured system; `folder` contains its training log."""
    curves = read_curves(folder, measured.flops_per_update)
    sample = sample_of(measured.test)
    scores = sample.intervals() if sample else {}
    return SystemReport(name, source, recipe, DONE, None, measured, curves, scores, list(remarks), shares_data)


def gather(systems: Sequence[SystemReport], test: str, budget: Budget) -> Report:
    done = {system.name: system.measured.test for system in systems if system.measured}
    samples = {name: sample for name, result in done.items() if (sample := sample_of(result))}
    texts = {name: sample for name, sample in samples.items() if isinstance(sample, TextSample)}
    recipes = {system.name: system.recipe for system in systems if system.recipe and system.state != FAILED}
    recipe = next(iter(recipes.values()), None) or next(system.recipe for system in systems if system.recipe)
    score = next((name for system in systems for name in system.scores), None)
    lengths = next((result.lengths for result in done.values() if result.lengths), [])
    moves = reordering_distances(recipe) if texts else None
    first, different = choose_samples(done, texts)
    # The curve shows the first score that a log has, preferably the one that selected the best checkpoint.
    scores = score_names(find_task(recipe.task).spec, recipe)
    names = [f"{VALID}{name}" for name in (recipe.train.best, *scores) if name]
    logged = {name for system in systems if system.curves for name in system.curves.values}
    return Report(
        systems=list(systems),
        task=recipe.task,
        test=test,
        budget=budget,
        score=score,
        curve=next((name for name in names if name in logged), names[0]),
        pairs=[
            Pair(a, b, samples[b].against(samples[a]))
            for a, b in combinations(samples, 2)
            if done[a].count == done[b].count
        ],
        by_length=group_scores(lengths, texts, score) if texts and score else [],
        by_move=group_scores(moves, texts, score) if moves and score and len(moves) == len(lengths) else [],
        first=first,
        different=different,
        settings=differing_settings(recipes),
    )


def differing_settings(recipes: Mapping[str, Recipe]) -> dict[str, dict[str, str]]:
    """Return the settings in which recipes differ, except `UNREPORTED`, with each value; "–" where a key is missing."""
    flat = {}
    for name, recipe in recipes.items():
        settings = {
            key: format_setting(value)
            for key, value in dotted(recipe_to_dict(recipe))
            if not key.startswith(tuple(map(str, UNREPORTED)))  # the same, or reported elsewhere
        }
        weights = [corpus.weight for corpus in recipe.data.train]
        flat[name] = settings | {"data.train.weight": format_setting(weights)}
    keys = dict.fromkeys(key for settings in flat.values() for key in settings)
    values = {key: {name: settings.get(key, NONE) for name, settings in flat.items()} for key in keys}
    return {key: by_system for key, by_system in values.items() if len(set(by_system.values())) > 1}


def format_setting(value: object) -> str:
    """Format a setting for readers, much as in a recipe."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(format_setting, value)) or "none"
    return str(value)
