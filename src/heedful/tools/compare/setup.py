"""What is compared: systems, budgets, and what they have in common: task, data, test set, classes."""

import os
import re
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.architectures.parameters import count_without_building
from heedful.checkpoint import find_model
from heedful.checkpoint.load import model_in
from heedful.checkpoint.model_folder import read_description
from heedful.config.keys import KEYS
from heedful.config.load import FILE, is_recipe, load_recipe
from heedful.config.rules import impossible
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError
from heedful.storage.manifest import read_manifest
from heedful.storage.paths import likely
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.training.trainer_state import DECAYING

TOLERANCE = 0.05  # share by which the parameters of a system may differ from the budget
WIDEST = 4096  # d_model is searched below, first in steps
STEP = 8


@dataclass(frozen=True)
class Budget:
    """Equal budget of all systems; None for whatever each recipe decides by itself."""

    updates: int | None = None  # updates of the training, in place of `train.max_updates`
    minutes: float | None = None  # minutes of training, validation not counted, in place of `train.max_minutes`
    parameters: int | None = None  # number of parameters that every system must have, up to the share `TOLERANCE`

    @property
    def overrides(self) -> tuple[str, ...]:
        """Settings of a recipe that give its training this budget, as "key=value"."""
        limits = ((KEYS.train.max_updates, self.updates), (KEYS.train.max_minutes, self.minutes))
        return tuple(f"{key}={value}" for key, value in limits if value is not None)

    def allows(self, size: int) -> bool:
        return self.parameters is None or abs(size - self.parameters) <= TOLERANCE * self.parameters

    def check_size(self, recipe: Recipe, tokenizers: TokenizerPair) -> int:
        size = model_size(recipe, tokenizers)
        if self.parameters is None or self.allows(size):
            return size
        share = f"{abs(size / self.parameters - 1):.1%} {'more' if size > self.parameters else 'fewer'}"
        width, nearest = nearest_width(recipe, tokenizers, self.parameters)
        raise InputError(
            f"the model has {size:,} parameters, {share} than --parameters {self.parameters:,}, where at most "
            f"{TOLERANCE:.0%} are allowed; change its sizes: model.d_model = {width} alone would make it {nearest:,}"
        )

    def remarks(self, recipe: Recipe, updates: int | None, seconds: float | None, size: int) -> list[str]:
        """Say in sentences where a trained system differs from this budget, and why."""
        remarks = [] if self.allows(size) else [f"has {size:,} of --parameters {self.parameters:,}"]
        timely = self.minutes is None or (seconds is not None and seconds >= 60 * self.minutes)
        enough = self.updates is None or updates == self.updates
        if not enough and not (self.minutes and timely):
            remarks.append(f"has {updates or 'an unknown number of'} updates of --updates {self.updates}")
        if not timely and not (self.updates and enough):
            spent = "an unknown time" if seconds is None else f"{seconds / 60:.1f} minutes"
            remarks.append(f"has trained for {spent} of --minutes {self.minutes:g}: its recipe ends it earlier")
        schedule, limit = recipe.optimizer.schedule, recipe.train.max_updates
        ends_earlier = recipe.train.max_epochs is not None or recipe.train.max_minutes is not None
        if schedule in DECAYING and not ends_earlier and updates is not None and updates < limit:
            remarks.append(
                f'its learning rate (schedule "{schedule}") was to fall until update {limit:,}, not {updates:,}'
            )
        return remarks


def model_size(recipe: Recipe, tokenizers: TokenizerPair) -> int:
    """Count the parameters of the model that a recipe builds for a vocabulary, without memory for its weights."""
    return count_without_building(lambda: find_task(recipe.task).build(recipe, tokenizers)).total


def nearest_width(recipe: Recipe, tokenizers: TokenizerPair, parameters: int) -> tuple[int, int]:
    """Find the `model.d_model` that brings a model nearest to a number of parameters, all other keys unchanged."""
    coarse = with_widths(recipe, range(STEP, WIDEST, STEP))
    above = bisect(coarse, parameters, key=lambda candidate: model_size(candidate, tokenizers))
    between = [1, *(one.model.d_model for one in coarse), WIDEST][above : above + 2]
    fine = with_widths(recipe, range(between[0], between[1] + 1))
    sizes = {one.model.d_model: model_size(one, tokenizers) for one in fine}
    width = min(sizes, key=lambda width: abs(sizes[width] - parameters))
    return width, sizes[width]


def with_widths(recipe: Recipe, widths: range) -> list[Recipe]:
    """Return a recipe with each of several widths, without those that cannot work."""
    wider = (replace(recipe, model=replace(recipe.model, d_model=width)) for width in widths)
    return [candidate for candidate in wider if not impossible(candidate)]


UNSAID = DataConfig.target_language  # of a recipe that names no language


@dataclass(frozen=True)
class ComparisonSetup:
    """What all systems of a comparison have in common; the first one sets it."""

    system: str  # the name of that system
    task: str
    data: str | None  # SHA-256 of its training data; None if its files are not here, as may be for a trained model
    test: CorpusConfig  # the test set, with absolute paths
    test_digest: str  # SHA-256 of the test set
    test_name: str  # the test set, in words
    language: str  # the target language, by which texts are scored
    labels: tuple[str, ...]  # the classes that are distinguished; empty for a task without classes

    @classmethod
    def of(cls, system: str, recipe: Recipe, recipes: Sequence[Recipe], *, is_trained: bool) -> "ComparisonSetup":
        test, name = test_set(recipes)
        languages = (one.data.target_language for one in recipes if one.data.target_language != UNSAID)
        return cls(
            system=system,
            task=recipe.task,
            data=trained_on(recipe) if is_trained else data_digest(recipe),
            test=test,
            test_digest=test_digest(recipe, test),
            test_name=name,
            language=next(languages, UNSAID),
            labels=recipe.data.labels,
        )

    def check(self, recipe: Recipe) -> None:
        """Check that a system has the task of the comparison, and writes its language."""
        if recipe.task != self.task:
            raise InputError(
                f'its task is "{recipe.task}", and that of {self.system} is "{self.task}"; compare one task'
            )
        if recipe.data.target_language not in (UNSAID, self.language):
            raise InputError(
                f'its data.target_language is "{recipe.data.target_language}", and texts are scored here as those of '
                f'"{self.language}"; compare systems that write one language'
            )

    def check_data(self, recipe: Recipe) -> None:
        """Check that a system that is to be trained has the training data and the test set of the comparison."""
        if data_digest(recipe) != self.data:
            raise InputError(
                f"its training text, validation text or tokenizer differ from those of {self.system}; give all recipes "
                "the same [data] and [tokenizer], as systems are compared on the same data"
            )
        if recipe.data.test and test_digest(recipe, recipe.data.test) != self.test_digest:
            raise InputError(f"its test set (data.test) differs from that of {self.system}; name the same or none")

    def check_labels(self, recipe: Recipe) -> None:
        """Check that a trained classifier or tagger has the classes of the comparison."""
        if recipe.data.labels != self.labels:
            raise InputError(
                f"it tells apart {', '.join(recipe.data.labels)}, and {self.system} {', '.join(self.labels)}; compare "
                "systems whose data.labels are the same"
            )

    def applied(self, recipe: Recipe, *, is_trained: bool) -> Recipe:
        """Return the recipe of a system with the test set, unless it names its own, and with the language."""
        own = None if is_trained else recipe.data.test
        return replace(recipe, data=replace(recipe.data, test=own or self.test, target_language=self.language))


def test_set(recipes: Sequence[Recipe]) -> tuple[CorpusConfig, str]:
    """Return the test set that recipes name, or else their validation set, and its name in words."""
    for part, name in (("test", "the test set"), ("valid", "the validation set (no recipe names a test set)")):
        for recipe in recipes:
            if corpus := getattr(recipe.data, part):
                sides = {side: getattr(corpus, side) for side in ("source", "target") if getattr(corpus, side)}
                paths = {side: os.path.join(recipe.data.root, path) for side, path in sides.items()}
                return replace(corpus, **paths), f"{name}, {corpus.source}"
    raise InputError("there is nothing to test the systems on; set data.test in one of the recipes")


def trained_on(recipe: Recipe) -> str | None:
    """Return the SHA-256 of the training data of a trained model; None if its files are not here."""
    try:
        return data_digest(recipe)
    except InputError:
        return None


def test_digest(recipe: Recipe, test: CorpusConfig) -> str:
    return data_digest(replace(recipe, data=replace(recipe.data, train=(test,), valid=None)))


NAME = r"[\w][\w.-]*"


@dataclass(frozen=True)
class System:
    """System of a comparison: its name, its recipe or trained model, and the settings that are its own."""

    name: str  # the name in the report, and of the folder of its run
    source: Path  # a recipe (a TOML file, or a folder with a config.toml), or the folder of a run or of a model
    overrides: tuple[str, ...] = ()  # settings of the recipe to change, as "key=value"

    @property
    def is_trained(self) -> bool:
        """True if the source is a folder of a run or of a model, and not a recipe."""
        return self.source.is_dir() and not (self.source / FILE).is_file()

    def recipe(self, data: Path | None) -> Recipe:
        if not self.source.exists():
            remedy = f"name a TOML file, a folder with {FILE}, or the folder of a run or a model"

            def is_system(path: Path) -> bool:
                return is_recipe(path) or (path.is_dir() and model_in(path) is not None)

            raise InputError(f"{self.source}: there is no such recipe; {likely(self.source, remedy, is_system)}")
        if not self.is_trained:
            return load_recipe(self.source, self.overrides, data)
        if self.overrides:
            raise InputError(
                f"--set {self.overrides[0]}: {self.source} is trained already; only a recipe can be changed"
            )
        recipe = read_description(read_manifest(find_model(self.source)))[0]
        return recipe if data is None else replace(recipe, data=replace(recipe.data, root=str(data.absolute())))


def parse_systems(arguments: Sequence[str], settings: Sequence[str]) -> list[System]:
    """Parse systems, RECIPE or NAME=RECIPE, and their settings, KEY=VALUE for all or NAME:KEY=VALUE for one."""
    named = [parse_system(argument) for argument in arguments]
    counts = Counter(name for name, _ in named)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"two systems are named {twice[0]}; name them yourself, as in other-name={named[-1][1]}")
    for setting in settings:
        owner = owner_of(setting)
        if owner and owner not in counts:
            raise InputError(f"--set {setting}: there is no system {owner}; there are {', '.join(counts)}")
    systems = []
    for name, source in named:
        system = System(name, source)
        owners = (name,) if system.is_trained else ("", name)  # a trained model has no settings of all recipes
        own = [setting.removeprefix(f"{name}:") for setting in settings if owner_of(setting) in owners]
        systems.append(replace(system, overrides=tuple(own)))
    return systems


def parse_system(argument: str) -> tuple[str, Path]:
    parts = re.fullmatch(rf"({NAME})=(.+)", argument)
    if parts and not Path(argument).exists():
        return parts[1], Path(parts[2])
    source = Path(argument)
    absolute = source.absolute()
    name = absolute.parent.name if absolute.name == FILE else absolute.name.removesuffix(".toml")
    if not re.fullmatch(NAME, name):
        raise InputError(f"{argument}: name this system with letters and digits, as in my-name={argument}")
    return name, source


def owner_of(setting: str) -> str:
    """Return the name of the system that a setting NAME:KEY=VALUE is for; empty for a setting of all systems."""
    owner = re.match(rf"({NAME}):", setting.partition("=")[0])
    return owner[1] if owner else ""
