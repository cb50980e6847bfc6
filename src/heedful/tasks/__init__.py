"""Tasks: what the examples are, how they become a batch, and what the loss is. One file a task."""

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

__all__ = ["TASKS", "Task", "find_task"]

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
    """The task of a recipe: one of heedful's by its name, or a class of your own as "module:Class".

    Raises:
        InputError: there is none.
    """
    module, colon, attribute = name.partition(":")
    task = _yours(module, attribute, name) if colon else TASKS.get(name)
    if task is None:
        near = get_close_matches(name, TASKS) or TASKS
        raise InputError(f'task = "{name}": there is no such task; did you mean {" or ".join(near)}?')
    return task


def _yours(module: str, attribute: str, name: str) -> type[Task]:
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f'task = "{name}": cannot be imported ({error}); is its folder on PYTHONPATH?') from error
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise InputError(f'task = "{name}": is not a subclass of heedful.tasks.Task')
    return found
