"""Classes of the user's own, which a recipe names: tasks and architectures.

One of an installed package has a name by its entry point. One of any other module is named as "module:Class". Such a
name may come from a stranger's model folder, so the class is looked for among the modules that the program has
imported; a module is imported only for a recipe that the user names, or by `heedful --import MODULE`.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from heedful.config.schema import Recipe
from heedful.errors import InputError, RunError
from heedful.registry import ARCHITECTURES, TASKS, Registry

T = TypeVar("T")

REGISTRIES: dict[str, Registry[type]] = {"model.architecture": ARCHITECTURES, "task": TASKS}  # by the recipe's key


def find_class(key: str, name: str) -> type | None:
    """The class of a package, or of an imported module as "module:Class", that a recipe names; None: no such name."""
    if ":" in name:
        return find_object(key, name, type, "class")
    entries = REGISTRIES[key].installed().get(name)
    if not entries:
        return None
    part: Any = REGISTRIES[key][name]
    if not isinstance(part, type):
        raise InputError(f'{key} = "{name}": {entries[0].value}, which a package registers, is not a class')
    return part


def find_object(key: str, name: str, kind: type[T], what: str) -> T:
    """The object of one kind that a recipe names as "module:object"."""
    module, _, attribute = name.partition(":")
    imported = sys.modules.get(module)
    if imported is None:
        raise InputError(
            f'{key} = "{name}": heedful imports no code that a model folder names. If you trust the module {module}, '
            f"write `heedful --import {module} COMMAND ...`, or in Python `import {module}` before the model is loaded"
        )
    part = vars(imported).get(attribute)  # not getattr, which may run a module's own __getattr__
    if not isinstance(part, kind):
        raise InputError(f'{key} = "{name}": {module} has no {what} {attribute}')
    return part


def import_class(name: str, place: str) -> None:
    """Import the module of a class that a recipe of the user's names as "module:Class"; its code runs."""
    module, colon, _ = name.partition(":")
    if colon:
        try:
            import_user_module(module)
        except InputError as error:
            raise InputError(f"{place}: {name}: {error}") from error


def import_user_module(module: str) -> None:
    """Import a module with classes of the user's own, so that models may name them."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f'"{module}" is not the name of a module; write it as in an import statement, without .py')
    try:
        import_module(module)
    except ImportError as error:
        raise InputError(f"the module {module} cannot be imported ({error}); is its folder on PYTHONPATH?") from error
    except Exception as error:
        raise InputError(f"the module {module} cannot be imported: {_described(error, module)}") from error


def own_code(recipe: Recipe) -> dict[str, str]:
    """The keys of a recipe that name a class that does not come with heedful, and the names."""
    names = {"model.architecture": recipe.model.architecture, "task": recipe.task}
    own = {key: name for key, name in names.items() if REGISTRIES[key].is_own(name)}
    return own | {f"evaluate.metrics, {name}": name for name in recipe.evaluate.metrics if ":" in name}


@contextmanager
def errors_of_own_code(recipe: Recipe, what: str) -> Iterator[None]:
    """Context manager: an error of a class of the user's own becomes one that names the recipe's key, and the line."""
    own = own_code(recipe)
    try:
        yield
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:
        if not own:
            raise
        modules = {}
        for key, name in own.items():
            entries = REGISTRIES[key].installed().get(name) if key in REGISTRIES else None
            modules[key] = entries[0].module if entries else name.partition(":")[0]
        key = next((key for key, module in modules.items() if _line_in(error, module)), next(iter(own)))
        raise InputError(f'{key} = "{own[key]}": {what}: {_described(error, modules[key])}') from error


def _described(error: Exception, module: str) -> str:
    """The error of a module, its last line there, and a remedy where one is known."""
    place = _line_in(error, module)
    text = f"{type(error).__name__}: {error}" + (f" ({place})" if place else "")
    missing = getattr(error, "obj", None)
    if isinstance(error, AttributeError) and hasattr(type(missing), "__dataclass_fields__"):
        return (
            f"{text}; a key of [model] is missing: add {error.name} to the class {type(missing).__name__}, or extend "
            "heedful.config.schema.ModelConfig, which has all keys of a Transformer"
        )
    if "meta" in str(error) and isinstance(error, RuntimeError):
        return f"{text}; the model is first built without values, on the device meta: compute numbers without tensors"
    return text


def _line_in(error: Exception, module: str) -> str:
    """The last line of a module that an error has come through, as text; empty if there is none."""
    if isinstance(error, SyntaxError):
        return ""  # the error itself names the line
    file = getattr(sys.modules.get(module), "__file__", None) or f"{module.rpartition('.')[2]}.py"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).name == Path(file).name:
            return f"{Path(file).name}, line {frame.lineno}"
    return ""
