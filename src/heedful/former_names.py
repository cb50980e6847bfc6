"""Former names of packages, which code of version 0.1 may import: each leads to the module of today, with a warning."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

FORMER = {  # a module of the former package is in the first of these that has it
    "heedful.data.media": ["heedful.media"],
    "heedful.decode": ["heedful.search", "heedful.predictors"],
    "heedful.models": ["heedful.architectures"],
    "heedful.parallel": ["heedful.distributed"],
    "heedful.predict": ["heedful.predictors"],
    "heedful.serve": ["heedful.server"],
    "heedful.train": ["heedful.training"],
}


class FormerNames(MetaPathFinder, Loader):
    """Finder of modules by their former names; it gives the module of today itself, so that classes are the same."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module of today; None if the name is not a former one."""
        del path, target
        for former, packages in FORMER.items():
            if f"{fullname}.".startswith(f"{former}."):
                names = [package + fullname.removeprefix(former) for package in packages]
                today = next((name for name in names if find_spec(name)), None)
                return ModuleSpec(fullname, self, origin=today, is_package=fullname == former) if today else None
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module of today, and warn of the former name."""
        today = str(spec.origin)
        warnings.warn(f"{spec.name} is now {today}; the former name will go", DeprecationWarning, stacklevel=2)
        return import_module(today)

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing: the module is imported already."""


def install() -> dict[str, object]:
    """Let imports find modules by their former names.

    Returns:
        The modules of training that are imported, by name, for the function `heedful.train`.
    """
    sys.meta_path.insert(0, FormerNames())
    # An import of `heedful.train.loop` would put a package in the place of the function `heedful.train`.
    sys.modules["heedful.train"] = import_module("heedful.training")
    return vars(sys.modules["heedful.train"])
