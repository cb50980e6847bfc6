"""Twenty things to type in a notebook before reading the documentation: each works, or its error says what to type."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch

import heedful
import heedful.predictors
from heedful.errors import InputError
from heedful.predictors import Predictor, Text, translator
from heedful.tasks import TASKS
from heedful.tasks.parts.sequence_to_sequence import SequenceToSequence
from subjects import classifier

TEXT = "Where is the train station?"
NO_TEXT = "is neither a text nor a list; give a string"
GERMAN = "Wo ist der Bahnhof?"
Attempt = Callable[[Any], object]

WORKS: dict[str, Attempt] = {
    "called like a function": lambda model: model(TEXT),
    "called with an option": lambda model: model(TEXT, beam=2),
    "predict, as in other toolkits": lambda model: model.predict(TEXT),
    "a string of NumPy": lambda model: model.translate(np.str_(TEXT)),
    "a whole number of NumPy": lambda model: model.translate(TEXT, beam=np.int64(2)),
    "a copy": lambda model: copy.deepcopy(model).translate(TEXT),
    "a predictor sent to another process": lambda model: pickle.loads(pickle.dumps(model)).translate(TEXT),
    "moved to where it is": lambda model: model.to("cpu").translate(TEXT),
    "a name with a slash": lambda _: heedful.load("en-de/", "cpu")(TEXT),
    "a name as a path": lambda _: heedful.load(Path("en-de"), torch.device("cpu"), task="translation")(TEXT),
}
SAYS: dict[str, tuple[Attempt, str]] = {
    "a number in quotes": (lambda model: model(TEXT, beam="5"), "option: beam must be a whole number.* without quotes"),
    "an option misspelt": (lambda model: model(TEXT, bean=2), 'unknown option bean; did you mean "beam"'),
    "an option of Hugging Face": (lambda model: model(TEXT, num_beams=2), "unknown option num_beams; did you mean"),
    "a text in an array": (lambda model: model(np.array(TEXT)), NO_TEXT),
    "a file in place of a text": (
        lambda model: model(Path("a.txt")),
        NO_TEXT,
    ),
    "bytes": (lambda model: model(b"Hello"), NO_TEXT),
    "pairs for a translator": (lambda model: model([(TEXT, TEXT)]), "text 1: .* .tuple. is not a text; give a string"),
    "a string to read lazily": (lambda model: model.translate_lines(TEXT), "is a single text.* put it in a list"),
    "a GPU that is not there": (lambda model: model.to("cuda:93"), '"cuda:93" cannot be used.*; use "auto" or "cpu"$'),
    "a device called gpu": (lambda _: heedful.load("en-de", device="gpu"), 'unknown device "gpu"; use "cuda"'),
    "half precision": (lambda _: heedful.load("en-de", precision=_any("fp16")), "choose float32 or int8"),
    "a name misspelt": (lambda _: heedful.load("en_de"), 'no model "en_de".*did you mean "en-de"'),
    "another task": (
        lambda _: heedful.load("en-de", task="tagging"),
        'is a translation model; load it with task="translation"',
    ),
    "a target for texts": (
        lambda model: heedful.trace(model, [TEXT], _any("Wo?")),
        "trace each text with its own target",
    ),
}


def _any(value: Any) -> Any:
    """A value that the types forbid."""
    return value


@pytest.fixture(scope="module")
def model() -> translator.Translator:
    return heedful.load("en-de", "cpu")


@pytest.mark.parametrize("attempt", WORKS.values(), ids=WORKS)
def test_what_is_meant_is_done(model: translator.Translator, attempt: Attempt) -> None:
    assert attempt(model) == GERMAN


@pytest.mark.parametrize(("attempt", "words"), SAYS.values(), ids=SAYS)
def test_an_error_says_what_to_type(model: translator.Translator, attempt: Attempt, words: str) -> None:
    with pytest.raises(InputError, match=words):
        attempt(model)


def test_two_threads_use_one_model(model: translator.Translator) -> None:
    texts = [TEXT, "Two dogs are running.", "Good morning!"]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(model.translate, [texts] * 6))
    assert found == [model.translate(texts)] * 6
    assert not model.model.training


def test_a_pair_is_a_text_of_two_or_a_tuple_in_a_list() -> None:
    subject = classifier()
    assert subject(Text("a", "b")).label == subject([("a", "b")])[0].label


def test_the_predictor_of_every_task_is_a_public_name() -> None:
    """`heedful.load(model, as_=...)` takes a class of `heedful.predictors`."""
    for task in TASKS.values():
        # The types of what is imported late are stand-ins with its name.
        kind = translator.Translator if task.use is SequenceToSequence.use else get_type_hints(task.use)["return"]
        assert kind.__name__ in heedful.predictors.__all__
        assert issubclass(getattr(heedful.predictors, kind.__name__), Predictor)
