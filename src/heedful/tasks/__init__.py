"""Tasks, each composed of data, model, objective, metrics and predictor.

`parts` contains what several tasks share.
"""

from typing import TYPE_CHECKING

from heedful.config.user_code import check_task_name, find_class, import_class
from heedful.errors import InputError
from heedful.registry import TASKS, import_attribute, public_names

if TYPE_CHECKING:
    from heedful.tasks.readers import ExampleReader
    from heedful.tasks.specs import TaskSpec
    from heedful.tasks.task import Task

__all__ = ["TASKS", "Task", "find_task", "import_reader", "import_spec", "import_task"]

__getattr__ = public_names(__name__, {"heedful.tasks.task": ("Task",)})


def find_task(name: str) -> "type[Task]":
    """Find the task of a model or a recipe: a bundled or installed one by name, or a custom class by "module:Class".

    The module of a custom class is not imported, because an untrusted model folder may name it: see
    `heedful.config.user_code`.
    """
    from heedful.tasks.task import Task

    custom = find_class("task", name)
    if custom is not None and not issubclass(custom, Task):
        raise InputError(f'task = "{name}": {custom.__name__} is not a subclass of heedful.tasks.Task')
    if custom is not None and not hasattr(custom, "spec"):
        remedy = "set spec = heedful.tasks.specs.TaskSpec(...)"
        raise InputError(f'task = "{name}": {custom.__name__} has no spec; {remedy}')
    check_task_name(name)
    return custom or TASKS[name]


def import_task(name: str) -> "type[Task]":
    """Find the task of a recipe that the user trains; import the module of a custom class."""
    import_class(name, "task")
    return find_task(name)


def import_spec(name: str) -> "TaskSpec":
    """Find the spec of a recipe's task; for a bundled task, torch is not imported."""
    return bundled_spec(name) or import_task(name).spec


def import_reader(name: str) -> "type[ExampleReader]":
    """Find the reader of raw examples for a recipe's task.

    Only the readers of media files, and of tasks that are not bundled, need torch.
    """
    spec = bundled_spec(name)
    return import_attribute(f"heedful.tasks.readers.{spec.reader}") if spec else import_task(name).dataset.reader


def bundled_spec(name: str) -> "TaskSpec | None":
    from heedful.tasks.specs import SPECS

    return None if TASKS.installed().get(name) else SPECS.get(name)
