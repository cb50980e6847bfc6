"""Report of a comparison: every number of it, gathered from the results and the logs of the systems."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from heedful.compare.budget import Budget
from heedful.compare.curves import Curves, read_curves
from heedful.compare.groups import Group, group_scores, largest_moves
from heedful.compare.job import Measured
from heedful.compare.samples import Sample, choose_samples
from heedful.compare.statistics import TextSample, sample_of
from heedful.config.keys import KEYS
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.evaluate import Comparison, Resampled
from heedful.tasks import find_task
from heedful.tasks.task import score_names
from heedful.train.log_file import VALID

DONE, FAILED, WAITING = "done", "failed", "waiting"  # states of a system
AXES = {"updates": "updates", "minutes": "minutes of training", "FLOPs": "FLOPs of training"}
UNREPORTED = tuple(  # settings that are alike, or reported elsewhere
    str(key)
    for key in (
        KEYS.name,
        KEYS.data.root,
        KEYS.data.test,
        KEYS.data.train,
        KEYS.data.valid,
        KEYS.data.words,
        KEYS.train.max_minutes,
        KEYS.train.precision,
    )
)


@dataclass(frozen=True)
class SystemReport:
    """Report of one system.

    Attributes:
        name: the name of the system.
        source: the recipe, or the folder of the trained model.
        recipe: the recipe with its budget; None if it cannot be read.
        state: `DONE`, `FAILED`, or `WAITING` for its turn.
        error: for a system that failed, what happened.
        measured: the measurements of a system that is done.
        curves: the curves of its training.
        scores: the scores of single examples on the test set, by name, with 95 % intervals.
        remarks: sentences about the training, such as why it ended.
        shares_data: True if it was trained on the data of the first system; False also if that cannot be told.
    """

    name: str
    source: str
    recipe: Recipe | None
    state: str
    error: str | None = None
    measured: Measured | None = None
    curves: Curves | None = None
    scores: dict[str, Resampled] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    shares_data: bool = True


@dataclass(frozen=True)
class Pair:
    """Comparison of a system with one that was named before it, by paired bootstrap: one for each score."""

    baseline: str
    system: str
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Report:
    """Report of a comparison so far.

    Attributes:
        systems: the systems, in the order of the command line.
        task: the name of the task.
        test: the test set, in words.
        budget: the budget of every system.
        score: the name of the first score on the test set; None before any system is done.
        curve: the name of the validation score that is drawn, such as "valid_bleu".
        pairs: comparisons of all pairs of systems.
        by_length: scores by the length of the source in tokens.
        by_move: scores by the distance over which words move in translation, where the data say it.
        first: the first sentences of the test set with all outputs.
        different: the sentences on which systems differ most.
        settings: the settings in which the recipes differ, with the value of each system.
    """

    systems: list[SystemReport]
    task: str
    test: str
    budget: Budget
    score: str | None
    curve: str
    pairs: list[Pair]
    by_length: list[Group]
    by_move: list[Group]
    first: list[Sample]
    different: list[Sample]
    settings: dict[str, dict[str, str]]

    @property
    def done(self) -> list[SystemReport]:
        """Systems that are trained and measured."""
        return [system for system in self.systems if system.state == DONE]

    def to_json(self) -> dict[str, Any]:
        """Convert every number of the report to JSON values."""
        return {
            "format": 1,
            "task": self.task,
            "test": self.test,
            "budget": asdict(self.budget),
            "systems": [system_json(system) for system in self.systems],
            "comparisons": [asdict(pair) for pair in self.pairs],
            "by_length": [asdict(group) for group in self.by_length],
            "by_move": [asdict(group) for group in self.by_move],
            "samples": [asdict(sample) for sample in (*self.first, *self.different)],
            "settings": self.settings,
        }


def system_json(system: SystemReport) -> dict[str, Any]:
    """Convert the numbers of one system to JSON values; its texts stay in the file of its result."""
    measured = asdict(system.measured) if system.measured else {}
    test = measured.pop("test", {})
    curves = system.curves
    return {
        "name": system.name,
        "source": system.source,
        "state": system.state,
        "error": system.error,
        "remarks": system.remarks,
        "shares_data": system.shares_data,
        **measured,
        "tokens_per_second": curves and curves.tokens_per_second,
        "test": {key: test[key] for key in ("count", "seconds", "tokens", "scores")} if test else None,
        "intervals": {name: asdict(found) for name, found in system.scores.items()},
        "curves": {name: {axis: curves.against(axis, name) for axis in AXES} for name in curves.values}
        if curves
        else {},
    }


def gather(systems: Sequence[SystemReport], test: str, budget: Budget) -> Report:
    """Compute the report of a comparison from the reports of its systems.

    Args:
        systems: the reports of all systems; at least one has a recipe.
        test: the test set, in words.
        budget: the budget of every system.
    """
    done = {system.name: system.measured.test for system in systems if system.measured}
    samples = {name: sample for name, found in done.items() if (sample := sample_of(found))}
    texts = {name: sample for name, sample in samples.items() if isinstance(sample, TextSample)}
    recipes = {system.name: system.recipe for system in systems if system.recipe and system.state != FAILED}
    recipe = next(iter(recipes.values()), None) or next(system.recipe for system in systems if system.recipe)
    score = next((name for system in systems for name in system.scores), None)
    lengths = next((found.lengths for found in done.values() if found.lengths), [])
    moves = largest_moves(recipe) if texts else None
    first, different = choose_samples(done, texts)
    return Report(
        systems=list(systems),
        task=recipe.task,
        test=test,
        budget=budget,
        score=score,
        curve=drawn_score(recipe, systems),
        pairs=[
            Pair(a, b, samples[b].against(samples[a]))
            for a, b in combinations(samples, 2)
            if done[a].count == done[b].count
        ],
        by_length=group_scores(lengths, texts, score) if texts and score else [],
        by_move=group_scores(moves, texts, score) if moves and score and len(moves) == len(lengths) else [],
        first=first,
        different=different,
        settings=differing(recipes),
    )


def drawn_score(recipe: Recipe, systems: Sequence[SystemReport]) -> str:
    """Return the name of the validation score in the logs that is drawn as a curve."""
    names = [name for system in systems if system.curves for name in system.curves.values]
    wanted = [f"{VALID}{name}" for name in (recipe.train.best, *score_names(find_task(recipe.task), recipe)) if name]
    return next((name for name in wanted if name in names), wanted[0])


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
    """Report a system that is trained and measured; `folder` holds the log of its training."""
    curves = read_curves(folder, measured.flops_per_update)
    sample = sample_of(measured.test)
    scores = sample.intervals() if sample else {}
    return SystemReport(name, source, recipe, DONE, None, measured, curves, scores, list(remarks), shares_data)


def differing(recipes: Mapping[str, Recipe]) -> dict[str, dict[str, str]]:
    """Return the settings in which recipes differ, with the value of each; "–" where a recipe has no such key."""
    flat = {name: told_settings(recipe) for name, recipe in recipes.items()}
    keys = dict.fromkeys(key for settings in flat.values() for key in settings)
    table = {key: {name: settings.get(key, "–") for name, settings in flat.items()} for key in keys}
    return {key: values for key, values in table.items() if len(set(values.values())) > 1}


def told_settings(recipe: Recipe) -> dict[str, str]:
    """Return the settings that the report tells, by dotted key, as text."""
    told = {key: shown(value) for key, value in dotted(recipe_to_dict(recipe)) if not key.startswith(UNREPORTED)}
    return told | {"data.train.weight": shown([corpus.weight for corpus in recipe.data.train])}


def shown(value: object) -> str:
    """Format a setting for readers, much as a recipe has it."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(shown, value)) or "none"
    return str(value)
