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
    """The class of a package that a recipe names, or that of an imported module as "module:Class"; None: no such name.

    Args:
        key: the key of the recipe, "task" or "model.architecture".
        name: its value.

    Raises:
        InputError: the module has not been imported or cannot be, or has no such class.
    """
    return find_object(key, name, type, "class") if ":" in name else installed_class(key, name)


def find_object(key: str, name: str, kind: type[T], what: str) -> T:
    """The object of one kind that a recipe names as "module:object".

    Args:
        key: the key of the recipe, for messages.
        name: its value.
        kind: the type of the object; of any other type nothing is used that a model folder names.
        what: the kind in words, for messages.

    Raises:
        InputError: the module has not been imported, or has no such object.
    """
    module, _, attribute = name.partition(":")
    imported = sys.modules.get(module)
    if imported is None:
        raise InputError(
            f'{key} = "{name}": heedful imports no code that a model folder names. If you trust the module {module}, '
            f"write `heedful --import {module} COMMAND ...`, or in Python `import {module}` before the model is loaded"
        )
    found = vars(imported).get(attribute)  # not getattr, which may run a module's own __getattr__
    if not isinstance(found, kind):
        raise InputError(f'{key} = "{name}": {module} has no {what} {attribute}')
    return found


def installed_class(key: str, name: str) -> type | None:
    """The class that an installed package registers under a name; None: no package does.

    Raises:
        InputError: it cannot be imported, it is no class, or the name is taken.
    """
    registry = REGISTRIES[key]
    entries = registry.installed().get(name)
    if not entries:
        return None
    part: Any = registry[name]
    if not isinstance(part, type):
        raise InputError(f'{key} = "{name}": {entries[0].value}, which a package registers, is not a class')
    return part


def import_class(name: str, place: str) -> None:
    """Import the module of a class that a recipe of the user's names as "module:Class"; its code runs.

    Args:
        name: the name; one without a colon is not that of a class of the user's own.
        place: where the recipe names the class, for messages.

    Raises:
        InputError: the module cannot be imported.
    """
    module, colon, _ = name.partition(":")
    if colon:
        try:
            import_user_module(module)
        except InputError as error:
            raise InputError(f"{place}: {name}: {error}") from error


def import_user_module(module: str) -> None:
    """Import a module with classes of the user's own, so that models may name them.

    Raises:
        InputError: the module cannot be imported.
    """
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


def _module_of(key: str, name: str) -> str:
    """The module of a class of the user's own, by its name in a recipe."""
    entries = REGISTRIES[key].installed().get(name) if key in REGISTRIES else None
    return entries[0].module if entries else name.partition(":")[0]


@contextmanager
def errors_of_own_code(recipe: Recipe, what: str) -> Iterator[None]:
    """Context manager: an error of a class of the user's own becomes one that names the recipe's key, and the line.

    Without such a class nothing is changed.

    Args:
        recipe: the recipe, which may name classes as "module:Class".
        what: what fails, for the message, such as "the model cannot be built".

    Raises:
        InputError: the code raised another error.
    """
    own = own_code(recipe)
    try:
        yield
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:
        if not own:
            raise
        modules = {key: _module_of(key, name) for key, name in own.items()}
        key = next((key for key, module in modules.items() if _line_in(error, module)), next(iter(own)))
        raise InputError(f'{key} = "{own[key]}": {what}: {_described(error, modules[key])}') from error


def _described(error: Exception, module: str) -> str:
    """The error of a module, its last line there, and a remedy where one is known."""
    place = _line_in(error, module)
    said = f"{type(error).__name__}: {error}" + (f" ({place})" if place else "")
    missing = getattr(error, "obj", None)
    if isinstance(error, AttributeError) and hasattr(type(missing), "__dataclass_fields__"):
        return (
            f"{said}; a key of [model] is missing: add {error.name} to the class {type(missing).__name__}, or extend "
            "heedful.config.schema.ModelConfig, which has all keys of a Transformer"
        )
    if "meta" in str(error) and isinstance(error, RuntimeError):
        return f"{said}; the model is first built without values, on the device meta: compute numbers without tensors"
    return said


def _line_in(error: Exception, module: str) -> str:
    """The last line of a module that an error has come through, as text; empty if there is none."""
    if isinstance(error, SyntaxError):
        return ""  # the error itself names the line
    file = getattr(sys.modules.get(module), "__file__", None) or f"{module.rpartition('.')[2]}.py"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).name == Path(file).name:
            return f"{Path(file).name}, line {frame.lineno}"
    return ""
