"""Imports of modules by their names in version 0.1, which give the current modules and a DeprecationWarning.

`former_names.txt` has a line for each module: its former and its current name, relative to `heedful`. A colon separates
the name of a function or class from its module.
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
    """Finder of modules by their former names: both names give the same module, and therefore the same classes.

    Args:
        names: Current names by former name. Modules of a listed package need not be listed themselves.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the current module of a former name; return None for any other name."""
        del path, target
        package, _, module = fullname.rpartition(".")
        current = self.names.get(fullname)
        if current is None and package in self.names:
            current = f"{self.names[package]}.{module}"
            current = current if find_spec(current) else None
        return ModuleSpec(fullname, self, origin=current, is_package=True) if current else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import and return the current module, with a DeprecationWarning."""
        current = str(spec.origin)
        warnings.warn(f"{spec.name} is now {current}; import that", DeprecationWarning, stacklevel=2)
        module = import_module(current)
        for former, name in self.names.items():
            if former.startswith(f"{spec.name}:"):
                setattr(module, former.partition(":")[2], getattr(module, name.partition(":")[2]))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is already imported."""


def install() -> dict[str, object]:
    """Make modules importable by their former names; return the namespace of the former package `heedful.train`."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    names = dict(line.split() for line in text.splitlines())
    sys.meta_path.insert(0, FormerNames({PACKAGE + former: PACKAGE + current for former, current in names.items()}))
    # Otherwise an import of `heedful.train.loop` would replace the function `heedful.train` with a package.
    sys.modules["heedful.train"] = import_module("heedful.training")
    return vars(sys.modules["heedful.train"])
