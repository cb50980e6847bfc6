"""Setup of a comparison: systems, budgets, and the task, data, test set and classes that the systems share."""

import os
import re
import shlex
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.architectures.parameters import count_without_building
from heedful.checkpoint import find_model
from heedful.checkpoint.description import read_description
from heedful.checkpoint.find import model_in
from heedful.checkpoint.hub import download, is_hub_name
from heedful.config.keys import KEYS
from heedful.config.load import FILE, is_recipe, load_recipe
from heedful.config.rules import impossible
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from heedful.storage.complete_folder import read_manifest
from heedful.storage.paths import likely
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.training.learning_rate import DECAYING

TOLERANCE = 0.05  # fraction by which a system's number of parameters may differ from the budget
MAX_WIDTH, STEP = 4096, 8  # the largest d_model to try, and the step of the coarse search


@dataclass(frozen=True)
class Budget:
    """Budget that all systems share; None for limits that each recipe sets itself."""

    updates: int | None = None  # number of updates, in place of `train.max_updates`
    minutes: float | None = None  # minutes of training without validation, in place of `train.max_minutes`
    parameters: int | None = None  # number of parameters that every system must have, within `TOLERANCE`

    @property
    def overrides(self) -> tuple[str, ...]:
        """Recipe settings for this budget, as "key=value"."""
        limits = ((KEYS.train.max_updates, self.updates), (KEYS.train.max_minutes, self.minutes))
        return tuple(f"{key}={value}" for key, value in limits if value is not None)

    def allows(self, size: int) -> bool:
        return self.parameters is None or abs(size - self.parameters) <= TOLERANCE * self.parameters

    def check_size(self, recipe: Recipe, tokenizers: TokenizerPair) -> int:
        size = model_size(recipe, tokenizers)
        if self.parameters is None or self.allows(size):
            return size
        width, nearest = nearest_width(recipe, tokenizers, self.parameters)
        raise InputError(
            f"the model has {size:,} parameters, but --parameters {self.parameters:,} allows at most {TOLERANCE:.0%} "
            + (
                f"deviation; with model.d_model = {width} it would have {nearest:,}"
                if self.allows(nearest)
                else "deviation; change several of its sizes, or --parameters"
            )
        )

    def remarks(self, recipe: Recipe, updates: int | None, seconds: float | None, size: int) -> list[str]:
        """Return remarks on where a trained system deviates from this budget, and why."""
        remarks = [] if self.allows(size) else [f"has {size:,} parameters instead of --parameters {self.parameters:,}"]
        has_time = self.minutes is None or (seconds is not None and seconds >= 60 * self.minutes)
        has_updates = self.updates is None or updates == self.updates
        if not has_updates and not (self.minutes and has_time):
            remarks.append(f"has {updates or 'an unknown number of'} updates instead of --updates {self.updates}")
        if not has_time and not (self.updates and has_updates):
            spent = "an unknown time" if seconds is None else f"{seconds / 60:.1f} minutes"
            remarks.append(
                f"was trained for {spent} instead of --minutes {self.minutes:g}: its recipe ends training earlier"
            )
        schedule, limit = recipe.optimizer.schedule, recipe.train.max_updates
        ends_earlier = recipe.train.max_epochs is not None or recipe.train.max_minutes is not None
        if schedule in DECAYING and not ends_earlier and updates is not None and updates < limit:
            remarks.append(
                f'has a learning rate (schedule "{schedule}") that would fall until update {limit:,}, not {updates:,}'
            )
        return remarks


def model_size(recipe: Recipe, tokenizers: TokenizerPair) -> int:
    """Count the parameters of a recipe's model with these tokenizers, without allocating its weights."""
    return count_without_building(lambda: find_task(recipe.task).build(recipe, tokenizers)).total


def nearest_width(recipe: Recipe, tokenizers: TokenizerPair, parameters: int) -> tuple[int, int]:
    """Find the `model.d_model` that brings a model closest to a number of parameters, with all other keys unchanged."""

    def with_widths(widths: range) -> list[Recipe]:
        recipes = (replace(recipe, model=replace(recipe.model, d_model=width)) for width in widths)
        return [candidate for candidate in recipes if not impossible(candidate)]

    coarse = with_widths(range(STEP, MAX_WIDTH, STEP))
    index = bisect(coarse, parameters, key=lambda candidate: model_size(candidate, tokenizers))
    low, high = [1, *(candidate.model.d_model for candidate in coarse), MAX_WIDTH][index : index + 2]
    fine = with_widths(range(low, high + 1))
    sizes = {candidate.model.d_model: model_size(candidate, tokenizers) for candidate in fine}
    width = min(sizes, key=lambda width: abs(sizes[width] - parameters))
    return width, sizes[width]


DEFAULT_LANGUAGE = DataConfig.target_language  # the language of a recipe that does not name one


@dataclass(frozen=True)
class ComparisonSetup:
    """Task, data, test set, language and classes that all systems in a comparison share."""

    system: str  # the name of the system that determines task, data and classes: the first to train, or else the first
    task: str
    data: str | None  # SHA-256 of that system's training data; None if files are missing, as for some trained models
    test: CorpusConfig  # the test set, with absolute paths
    test_digest: str  # SHA-256 of the test set
    test_name: str  # description of the test set
    language: str  # the target language, which determines how texts are scored
    labels: tuple[str, ...]  # the classes; empty for a task without classes

    @classmethod
    def of(cls, system: str, recipe: Recipe, recipes: Sequence[Recipe], *, is_trained: bool) -> "ComparisonSetup":
        test, name = test_set(recipes)
        languages = (language for each in recipes if (language := each.data.target_language) != DEFAULT_LANGUAGE)
        return cls(
            system=system,
            task=recipe.task,
            data=digest_if_present(recipe) if is_trained else data_digest(recipe),
            test=test,
            test_digest=test_digest(recipe, test),
            test_name=name,
            language=next(languages, DEFAULT_LANGUAGE),
            labels=recipe.data.labels,
        )

    def join(self, recipe: Recipe, *, is_trained: bool) -> tuple[Recipe, bool]:
        """Check that a system can be compared; return its recipe for the comparison, and whether it shares the data.

        The recipe gets the language and the test set of the comparison; a system to be trained keeps its own test set,
        which must have the same content. Only a trained model may have been trained on other data.
        """
        if recipe.task != self.task:
            raise InputError(
                f'its task is "{recipe.task}", but that of {self.system} is "{self.task}"; compare systems for the '
                "same task"
            )
        if recipe.data.target_language not in (DEFAULT_LANGUAGE, self.language):
            raise InputError(
                f'its data.target_language is "{recipe.data.target_language}", but texts are scored here as '
                f'"{self.language}"; compare systems that write the same language'
            )
        shares_data, test = True, None
        if is_trained:
            shares_data = self.data is not None and digest_if_present(recipe) == self.data
        else:
            test = recipe.data.test
            if data_digest(recipe) != self.data:
                raise InputError(
                    f"its training text, validation text or tokenizer differs from that of {self.system}; give all "
                    "recipes the same [data] and [tokenizer], because systems are compared on the same data"
                )
            if test and test_digest(recipe, test) != self.test_digest:
                raise InputError(
                    f"its test set (data.test) differs from that of {self.system}; use the same one or none"
                )
        data = replace(recipe.data, test=test or self.test, target_language=self.language)
        return replace(recipe, data=data), shares_data

    def check_labels(self, recipe: Recipe) -> None:
        """Check that a trained classifier or tagger has the classes of the comparison."""
        if recipe.data.labels != self.labels:
            raise InputError(
                f"its classes are {', '.join(recipe.data.labels)}, but those of {self.system} are "
                f"{', '.join(self.labels)}; compare systems with the same data.labels"
            )


def test_set(recipes: Sequence[Recipe]) -> tuple[CorpusConfig, str]:
    """Return the first test set in the recipes or, without one, the first validation set, and a description of it."""
    for part, name in (("test", "the test set"), ("valid", "the validation set (no recipe has a test set)")):
        for recipe in recipes:
            if corpus := getattr(recipe.data, part):
                sides = {side: getattr(corpus, side) for side in ("source", "target") if getattr(corpus, side)}
                paths = {side: os.path.join(recipe.data.root, path) for side, path in sides.items()}
                return replace(corpus, **paths), f"{name}, {corpus.source}"
    raise InputError("the recipes have neither a test nor a validation set; set data.test in one of them")


def test_digest(recipe: Recipe, test: CorpusConfig) -> str:
    return data_digest(replace(recipe, data=replace(recipe.data, train=(test,), valid=None)))


def digest_if_present(recipe: Recipe) -> str | None:
    """Return the SHA-256 of the training data of a trained model; None if its files are missing."""
    try:
        return data_digest(recipe)
    except InputError:
        return None


NAME = r"[\w][\w.-]*"


@dataclass(frozen=True)
class System:
    """System of a comparison: its name, its recipe or trained model, and its settings."""

    name: str  # name of the system in the report, and of its run folder
    source: Path  # a recipe (a TOML file, or a folder with a config.toml), or a run or model folder
    overrides: tuple[str, ...] = ()  # recipe settings to change, as "key=value"

    @property
    def is_model(self) -> bool:
        """True if the source is a run or model folder rather than a recipe."""
        return self.source.is_dir() and not (self.source / FILE).is_file()

    def recipe(self, data: Path | None) -> Recipe:
        if not self.source.exists():

            def is_system(path: Path) -> bool:
                return is_recipe(path) or (path.is_dir() and model_in(path) is not None)

            remedy = f"give a TOML file, a folder with {FILE}, or a run or model folder"
            raise InputError(f"{self.source}: no such recipe; {likely(self.source, remedy, is_system)}")
        if self.is_model and model_in(self.source) is None:
            raise InputError(
                f"{self.source}: contains neither a recipe ({FILE}) nor a model; give a folder that contains one"
            )
        if not self.is_model:
            return load_recipe(self.source, self.overrides, data)
        if self.overrides:
            raise InputError(
                f"--set {self.overrides[0]}: {self.source} is already trained; only a recipe can be changed"
            )
        recipe = read_description(read_manifest(find_model(self.source)))[0]
        return recipe if data is None else replace(recipe, data=replace(recipe.data, root=str(data.absolute())))


def located(source: str) -> Path:
    """Return the path of a system; download it if it is a model on the Hub."""
    return download(source) if is_hub_name(source) else Path(source)


def parse_systems(arguments: Sequence[str], settings: Sequence[str]) -> list[System]:
    """Parse systems, RECIPE or NAME=RECIPE, and their settings, KEY=VALUE for all or NAME:KEY=VALUE for one."""
    systems: list[System] = []
    for argument in arguments:
        parts = re.fullmatch(rf"({NAME})=(.+)", argument)
        if parts and not Path(argument).exists():
            systems.append(System(parts[1], located(parts[2])))
            continue
        absolute = Path(argument).absolute()
        name = absolute.parent.name if absolute.name == FILE else absolute.name.removesuffix(".toml")
        if not re.fullmatch(NAME, name):
            source = argument if Path(argument).exists() else argument.rpartition("=")[2]
            raise InputError(
                f"{argument}: give this system a name of letters and digits, as in {shlex.quote(f'my-name={source}')}"
            )
        systems.append(System(name, located(argument)))
    counts = Counter(system.name for system in systems)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"two systems are named {twice[0]}; rename one of them, as in other-name={systems[-1].source}")

    owners = []  # the system of each setting; "" for settings of all systems
    for setting in settings:
        match = re.match(rf"({NAME}):", setting.partition("=")[0])
        owners.append(match[1] if match else "")
        if owners[-1] and owners[-1] not in counts:
            raise InputError(f"--set {setting}: no system is named {owners[-1]}; the systems are {', '.join(counts)}")
    for index, system in enumerate(systems):
        # Settings for all recipes do not change a trained model.
        names = (system.name,) if system.is_model else ("", system.name)
        overrides = [
            setting.removeprefix(f"{system.name}:")
            for owner, setting in zip(owners, settings, strict=True)
            if owner in names
        ]
        systems[index] = replace(system, overrides=tuple(overrides))
    return systems
