"""Tasks, one file each, put together from data, model, objective, metrics and predictor.

`parts` has what several tasks share.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

from heedful.config.user_code import find_class, import_class
from heedful.errors import InputError
from heedful.registry import TASKS, public_names

if TYPE_CHECKING:
    from heedful.tasks.task import Task

__all__ = ["TASKS", "Task", "find_task", "import_task"]

__getattr__ = public_names(__name__, {"heedful.tasks.task": ("Task",)})


def find_task(name: str) -> "type[Task]":
    """Find the task of a model or a recipe by name, or a class of the user's own as "module:Class".

    The module of such a class is not imported, because the name may come from a stranger's model folder: see
    `heedful.config.user_code`.
    """
    from heedful.tasks.task import Task

    own = find_class("task", name)
    if own is not None and not issubclass(own, Task):
        raise InputError(f'task = "{name}": {own.__name__} is not a subclass of heedful.tasks.Task')
    task = own or TASKS.get(name)
    if task is None:
        near = get_close_matches(name, TASKS) or TASKS
        raise InputError(f'task = "{name}": there is no such task; did you mean {" or ".join(near)}?')
    return task


def import_task(name: str) -> "type[Task]":
    """Find the task of a recipe that the user trains; the module of a class of the user's own is imported and runs."""
    import_class(name, "task")
    return find_task(name)
