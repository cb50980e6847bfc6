"""Tasks, one file each: examples, batches, loss and scores of each kind of training (translation, tagging ...)."""

import sys
from difflib import get_close_matches
from importlib import import_module

from heedful.errors import InputError
from heedful.tasks.classification import Classification
from heedful.tasks.dialogue import Dialogue
from heedful.tasks.language_model import CausalLanguageModelling
from heedful.tasks.masked_lm import MaskedLanguageModelling
from heedful.tasks.ranking import Ranking
from heedful.tasks.regression import Regression
from heedful.tasks.span_qa import SpanQuestionAnswering
from heedful.tasks.summarisation import Summarisation
from heedful.tasks.tagging import Tagging
from heedful.tasks.task import Task
from heedful.tasks.text_to_text import TextToText
from heedful.tasks.translation import Translation

__all__ = ["TASKS", "Task", "find_task", "import_task", "import_tasks"]

TASKS: dict[str, type[Task]] = {
    "classification": Classification,
    "dialogue": Dialogue,
    "language_model": CausalLanguageModelling,
    "masked_lm": MaskedLanguageModelling,
    "ranking": Ranking,
    "regression": Regression,
    "span_qa": SpanQuestionAnswering,
    "summarisation": Summarisation,
    "tagging": Tagging,
    "text_to_text": TextToText,
    "translation": Translation,
}


def find_task(name: str) -> type[Task]:
    """Find the class of a task: a built-in task by its name, or a user's own class as "module:Class".

    The name may come from a stranger's model folder, so nothing is imported here: the module of a user's own class
    must have been imported before, by the program or by `import_task`.

    Raises:
        InputError: there is no such task, or its module was not imported.
    """
    module, colon, attribute = name.partition(":")
    task = _imported(module, attribute, name) if colon else TASKS.get(name)
    if task is None:
        near = get_close_matches(name, TASKS) or TASKS
        raise InputError(f'task = "{name}": there is no such task; did you mean {" or ".join(near)}?')
    return task


def import_task(name: str) -> type[Task]:
    """Find the class of a task, and import the module of a user's own class, which runs its code.

    Raises:
        InputError: there is no such task, or its module cannot be imported.
    """
    module, colon, _ = name.partition(":")
    if colon:
        import_tasks(module)
    return find_task(name)


def import_tasks(module: str) -> None:
    """Import a module with a user's own tasks, so that recipes and models can name them.

    Raises:
        InputError: the module cannot be imported.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f'"{module}" is not the name of a module; write it as in an import statement, without .py')
    try:
        import_module(module)
    except ImportError as error:
        raise InputError(f"the module {module} cannot be imported ({error}); is its folder on PYTHONPATH?") from error


def _imported(module: str, attribute: str, name: str) -> type[Task]:
    imported = sys.modules.get(module)
    if imported is None:
        raise InputError(
            f'task = "{name}": heedful imports no code that a model folder names. If you trust the module {module}, '
            f"write `heedful --import {module} COMMAND ...`, or in Python `import {module}` before the model is loaded"
        )
    found = vars(imported).get(attribute)  # not getattr, which may run a module's own __getattr__
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise InputError(f'task = "{name}": {module} has no class {attribute} that is a subclass of heedful.tasks.Task')
    return found
