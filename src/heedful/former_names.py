"""Imports of modules by their names in version 0.1: each gives the current module, with a DeprecationWarning.

`former_names.txt` has a line for each: the former and the current name, relative to `heedful`. A colon separates the
name of a function or class from its module.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

PACKAGE = "heedful."


class FormerNames(MetaPathFinder, Loader):
    """Finder of modules by their former names; it returns the current module itself, so that classes are the same.

    Args:
        names: Current names by former name. If a package is listed, its modules need not be.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the current module; None for any other name."""
        del path, target
        package, _, module = fullname.rpartition(".")
        today = self.names.get(fullname)
        if today is None and package in self.names:
            today = f"{self.names[package]}.{module}"
            today = today if find_spec(today) else None
        return ModuleSpec(fullname, self, origin=today, is_package=True) if today else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the current module, and warn."""
        today = str(spec.origin)
        warnings.warn(f"{spec.name} is now {today}; import that", DeprecationWarning, stacklevel=2)
        module = import_module(today)
        for former, name in self.names.items():
            if former.startswith(f"{spec.name}:"):
                setattr(module, former.partition(":")[2], getattr(module, name.partition(":")[2]))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is already imported."""


def install() -> dict[str, object]:
    """Make imports find modules by their former names; return the modules of training, for `heedful.train`."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    names = dict(line.split() for line in text.splitlines())
    sys.meta_path.insert(0, FormerNames({PACKAGE + former: PACKAGE + today for former, today in names.items()}))
    # Otherwise an import of `heedful.train.loop` would replace the function `heedful.train` with a package.
    sys.modules["heedful.train"] = import_module("heedful.training")
    return vars(sys.modules["heedful.train"])
