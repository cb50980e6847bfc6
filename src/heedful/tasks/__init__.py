"""Tasks, one file each: examples, batches, loss and scores of each kind of training (translation, tagging ...)."""

from difflib import get_close_matches

from heedful.config.user_code import find_class, import_class
from heedful.errors import InputError
from heedful.tasks.captioning import Captioning
from heedful.tasks.classification import Classification
from heedful.tasks.dialogue import Dialogue
from heedful.tasks.image_text_retrieval import ImageTextRetrieval
from heedful.tasks.language_model import CausalLanguageModelling
from heedful.tasks.masked_lm import MaskedLanguageModelling
from heedful.tasks.masked_patches import MaskedPatches
from heedful.tasks.media_classification import AudioClassification, ImageClassification, VideoClassification
from heedful.tasks.ranking import Ranking
from heedful.tasks.regression import Regression
from heedful.tasks.span_qa import SpanQuestionAnswering
from heedful.tasks.speech_recognition import SpeechRecognition
from heedful.tasks.summarisation import Summarisation
from heedful.tasks.tagging import Tagging
from heedful.tasks.task import Task
from heedful.tasks.text_to_text import TextToText
from heedful.tasks.translation import Translation
from heedful.tasks.word_vectors import WordVectorTraining

__all__ = ["TASKS", "Task", "find_task", "import_task"]

TASKS: dict[str, type[Task]] = {
    "audio_classification": AudioClassification,
    "captioning": Captioning,
    "classification": Classification,
    "dialogue": Dialogue,
    "image_classification": ImageClassification,
    "image_text_retrieval": ImageTextRetrieval,
    "language_model": CausalLanguageModelling,
    "masked_lm": MaskedLanguageModelling,
    "masked_patches": MaskedPatches,
    "ranking": Ranking,
    "regression": Regression,
    "span_qa": SpanQuestionAnswering,
    "speech_recognition": SpeechRecognition,
    "summarisation": Summarisation,
    "tagging": Tagging,
    "text_to_text": TextToText,
    "translation": Translation,
    "video_classification": VideoClassification,
    "word_vectors": WordVectorTraining,
}


def find_task(name: str) -> type[Task]:
    """Find the task of a model or a recipe: a built-in one by name, or a class of the user's own as "module:Class".

    Nothing is imported here, because the name may come from a stranger's model folder: see `heedful.config.user_code`.

    Raises:
        InputError: there is no such task, or its module has not been imported.
    """
    own = find_class("task", name)
    if own is not None and not issubclass(own, Task):
        raise InputError(f'task = "{name}": {own.__name__} is no subclass of heedful.tasks.Task')
    task = own or TASKS.get(name)
    if task is None:
        near = get_close_matches(name, TASKS) or TASKS
        raise InputError(f'task = "{name}": there is no such task; did you mean {" or ".join(near)}?')
    return task


def import_task(name: str) -> type[Task]:
    """Find the task of a recipe that the user trains; the module of a class of the user's own is imported and runs.

    Raises:
        InputError: there is no such task, or its module cannot be imported.
    """
    import_class(name, "task")
    return find_task(name)
