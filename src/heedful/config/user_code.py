"""Classes of the user's own, which a recipe names as "module:Class": tasks and architectures.

The name may come from a stranger's model folder. So a class is looked for among the modules that the program has
imported; a module is imported only for a recipe that the user names, or by `heedful --import MODULE`.
"""

import sys
from importlib import import_module
from typing import Any

from heedful.errors import InputError


def find_class(key: str, name: str) -> type | None:
    """The class that a recipe names as "module:Class", if its module has been imported; None for a name without colon.

    Args:
        key: the key of the recipe, for messages.
        name: its value.

    Raises:
        InputError: the module has not been imported, or has no such class.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        return None
    imported = sys.modules.get(module)
    if imported is None:
        raise InputError(
            f'{key} = "{name}": heedful imports no code that a model folder names. If you trust the module {module}, '
            f"write `heedful --import {module} COMMAND ...`, or in Python `import {module}` before the model is loaded"
        )
    found: Any = vars(imported).get(attribute)  # not getattr, which may run a module's own __getattr__
    if not isinstance(found, type):
        raise InputError(f'{key} = "{name}": {module} has no class {attribute}')
    return found


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
