"""Custom classes that a recipe names: tasks and architectures.

A class in an installed package is named by its entry point, and a class in any other module as "module:Class". Since
such a name may come from a stranger's model folder, the class is looked up only in modules that the program has already
imported; a module is imported only for a recipe that the user gives, or by `heedful --import MODULE`.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from heedful.config.keys import KEYS
from heedful.config.schema import Recipe
from heedful.errors import InputError, RunError
from heedful.registry import ARCHITECTURES, TASKS, Registry
from heedful.wording import did_you_mean

T = TypeVar("T")

# By recipe key.
REGISTRIES: dict[str, Registry[type]] = {str(KEYS.model.architecture): ARCHITECTURES, str(KEYS.task): TASKS}


def check_task_name(name: str, place: str | None = None) -> None:
    """Raise an InputError unless a task is built in, comes from an installed package, or is named as "module:Class".

    The error begins with `place`, or with the recipe's key if it is None.
    """
    if name not in TASKS and ":" not in name:
        near = get_close_matches(name, TASKS)
        hint = did_you_mean(near) if near else f"choose one of {', '.join(TASKS)}"
        place = place or f'task = "{name}"'
        raise InputError(f"{place}: unknown task; {hint}")


def find_class(key: str, name: str) -> type | None:
    """Find the custom class, registered by a package or named as "module:Class"; return None for a built-in name."""
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
    """Find the object of a given type that a recipe names as "module:object"."""
    module, _, attribute = name.partition(":")
    imported = sys.modules.get(module)
    if imported is None:
        raise InputError(
            f'{key} = "{name}": heedful does not import code named by a model folder. If you trust {module}, '
            f"write `heedful --import {module} COMMAND ...`, or in Python `import {module}` before the model is loaded"
        )
    part = vars(imported).get(attribute)  # not getattr, which may run a module's own __getattr__
    if not isinstance(part, kind):
        raise InputError(f'{key} = "{name}": {module} has no {what} {attribute}')
    return part


def import_class(name: str, location: str) -> None:
    """Import the module of a class that the user's recipe names as "module:Class", running the module's code.

    Any other name is ignored. Error messages begin with `location`.
    """
    module, colon, _ = name.partition(":")
    if colon:
        try:
            import_user_module(module)
        except InputError as error:
            raise InputError(f"{location}: {name}: {error}") from error


def import_user_module(module: str) -> None:
    """Import a module with custom classes, so that recipes and models can refer to them by name."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f'"{module}" is not a module name; write it as in an import statement, without .py')
    try:
        import_module(module)
    except ImportError as error:
        raise InputError(f"the module {module} cannot be imported ({error}); is its folder on PYTHONPATH?") from error
    except Exception as error:
        raise InputError(f"the module {module} cannot be imported: {_described(error, module)}") from error


def custom_code(recipe: Recipe) -> dict[str, str]:
    """Map each recipe key that names a custom class or metric to this name."""
    names = {str(KEYS.model.architecture): recipe.model.architecture, str(KEYS.task): recipe.task}
    custom = {key: name for key, name in names.items() if REGISTRIES[key].is_custom(name)}
    return custom | {f"evaluate.metrics, {name}": name for name in recipe.evaluate.metrics if ":" in name}


@contextmanager
def custom_code_errors(recipe: Recipe, what: str) -> Iterator[None]:
    """Turn an error that custom code raises in the block into an InputError that names the recipe key and the line."""
    own = custom_code(recipe)
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
    """Describe an error raised in a module, with the last line reached in it, and a remedy if one is known."""
    line = _line_in(error, module)
    text = f"{type(error).__name__}: {error}" + (f" ({line})" if line else "")
    missing = getattr(error, "obj", None)
    if isinstance(error, AttributeError) and hasattr(type(missing), "__dataclass_fields__"):
        return (
            f"{text}; a key of [model] is missing: add {error.name} to the class {type(missing).__name__}, or extend "
            "heedful.config.schema.ModelConfig, which has all keys of a Transformer"
        )
    if "meta" in str(error) and isinstance(error, RuntimeError):
        return f"{text}; the model is first built without values, on the meta device: compute numbers without tensors"
    return text


def _line_in(error: Exception, module: str) -> str:
    """Return the file name and last line of a module in the traceback of an error, or "" if it does not occur there."""
    if isinstance(error, SyntaxError):
        return ""  # the message of a SyntaxError gives the line
    file = getattr(sys.modules.get(module), "__file__", None) or f"{module.rpartition('.')[2]}.py"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).name == Path(file).name:
            return f"{Path(file).name}, line {frame.lineno}"
    return ""
