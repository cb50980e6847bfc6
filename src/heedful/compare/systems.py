"""Systems of a comparison: the recipes and trained models that are named on the command line."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.checkpoint import find_model
from heedful.checkpoint.load import model_in
from heedful.checkpoint.model_folder import read_description
from heedful.config.load import FILE, is_recipe, load_recipe
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.storage.manifest import read_manifest
from heedful.storage.paths import likely

NAME = r"[\w][\w.-]*"


@dataclass(frozen=True)
class System:
    """System of a comparison: its name, its recipe or trained model, and the settings that are its own.

    Attributes:
        name: the name in the report, and of the folder of its run.
        source: a recipe (a TOML file, or a folder with a config.toml), or the folder of a run or of a model.
        overrides: settings of the recipe to change, as "key=value".
    """

    name: str
    source: Path
    overrides: tuple[str, ...] = ()

    @property
    def is_trained(self) -> bool:
        """True if the source is a folder of a run or of a model, and not a recipe."""
        return self.source.is_dir() and not (self.source / FILE).is_file()

    def recipe(self, data: Path | None) -> Recipe:
        """Load the recipe of a system, or the recipe that its model was trained with.

        Args:
            data: the folder of the data files; None: as the recipe says.

        Raises:
            InputError: the recipe or the model cannot be read, or settings of a trained model are to be changed.
        """
        if not self.source.exists():
            remedy = f"name a TOML file, a folder with {FILE}, or the folder of a run or a model"
            raise InputError(f"{self.source}: there is no such recipe; {likely(self.source, remedy, _is_system)}")
        if not self.is_trained:
            return load_recipe(self.source, self.overrides, data)
        if self.overrides:
            raise InputError(
                f"--set {self.overrides[0]}: {self.source} is trained already; only a recipe can be changed"
            )
        recipe = read_description(read_manifest(find_model(self.source)))[0]
        return recipe if data is None else replace(recipe, data=replace(recipe.data, root=str(data.absolute())))


def _is_system(path: Path) -> bool:
    return is_recipe(path) or (path.is_dir() and model_in(path) is not None)


def parse_systems(arguments: Sequence[str], settings: Sequence[str]) -> list[System]:
    """Parse the systems and the settings of a comparison as they stand on the command line.

    Args:
        arguments: for each system RECIPE or NAME=RECIPE; without a name, that of the file or folder is taken.
        settings: KEY=VALUE, a setting of all recipes, or NAME:KEY=VALUE, a setting of one system.

    Raises:
        InputError: two systems have one name, or a setting is for a system that there is not.
    """
    named = [parse_system(argument) for argument in arguments]
    counts = Counter(name for name, _ in named)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise InputError(f"two systems are named {twice[0]}; name them yourself, as in other-name={named[-1][1]}")
    for setting in settings:
        owner = owner_of(setting)
        if owner and owner not in counts:
            raise InputError(f"--set {setting}: there is no system {owner}; there are {', '.join(counts)}")
    systems = [System(name, source) for name, source in named]
    return [replace(system, overrides=tuple(settings_of(system, settings))) for system in systems]


def settings_of(system: System, settings: Sequence[str]) -> Iterator[str]:
    """Iterate over the settings of a system, as "key=value"; those of all recipes are not for trained models."""
    owners = (system.name,) if system.is_trained else ("", system.name)
    for setting in settings:
        owner = owner_of(setting)
        if owner in owners:
            yield setting.removeprefix(f"{owner}:") if owner else setting


def parse_system(argument: str) -> tuple[str, Path]:
    """Parse RECIPE or NAME=RECIPE to a name and a path.

    Raises:
        InputError: the name cannot be that of a folder.
    """
    given = re.fullmatch(rf"({NAME})=(.+)", argument)
    if given and not Path(argument).exists():
        return given[1], Path(given[2])
    source = Path(argument)
    absolute = source.absolute()
    name = absolute.parent.name if absolute.name == FILE else absolute.name.removesuffix(".toml")
    if not re.fullmatch(NAME, name):
        raise InputError(f"{argument}: name this system with letters and digits, as in my-name={argument}")
    return name, source


def owner_of(setting: str) -> str:
    """Return the name of the system that a setting NAME:KEY=VALUE is for; empty for a setting of all systems."""
    found = re.match(rf"({NAME}):", setting.partition("=")[0])
    return found[1] if found else ""
