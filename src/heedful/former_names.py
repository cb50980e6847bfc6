"""Former names of modules, which code of version 0.1 may import: each leads to the module of today, with a warning.

`former_names.txt` has a line for each: the former name and that of today, below `heedful`. After a colon
is the name of a function or class of the module.
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
    """Finder of modules by their former names; it gives the module of today itself, so that classes are the same.

    Args:
        names: The names of today by the former ones. A module of a package that is listed need not be.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module of today; None if the name is not a former one."""
        del path, target
        package, _, module = fullname.rpartition(".")
        today = self.names.get(fullname)
        if today is None and package in self.names:
            today = f"{self.names[package]}.{module}"
            today = today if find_spec(today) else None
        return ModuleSpec(fullname, self, origin=today, is_package=True) if today else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module of today, and warn of the former name."""
        today = str(spec.origin)
        warnings.warn(f"{spec.name} is now {today}; the former name will go", DeprecationWarning, stacklevel=2)
        module = import_module(today)
        for former, name in self.names.items():
            if former.startswith(f"{spec.name}:"):
                setattr(module, former.partition(":")[2], getattr(module, name.partition(":")[2]))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing: the module is imported already."""


def install() -> dict[str, object]:
    """Let imports find modules by their former names; return the modules of training, for `heedful.train`."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    names = dict(line.split() for line in text.splitlines())
    sys.meta_path.insert(0, FormerNames({PACKAGE + former: PACKAGE + today for former, today in names.items()}))
    # An import of `heedful.train.loop` would put a package in the place of the function `heedful.train`.
    sys.modules["heedful.train"] = import_module("heedful.training")
    return vars(sys.modules["heedful.train"])
