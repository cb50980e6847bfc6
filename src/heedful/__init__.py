"""heedful: a Transformer toolkit: train translators, BERT and GPT, use and evaluate them, look inside.

`heedful.load("en-de").translate("Where is the train station?")` uses the bundled model.
"""

from collections.abc import Collection, Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from heedful import former_names

if TYPE_CHECKING:  # so that importing heedful does not import torch
    import numpy as np
    import torch
    from rich.console import Console

    from heedful.config.schema import Recipe
    from heedful.inspector.capture.trace import Trace
    from heedful.inspector.page import View
    from heedful.predictors import AnyPredictor, Translator
    from heedful.training.in_process import TrainingResult

    Device: TypeAlias = str | torch.device

__all__ = ["__version__", "load", "look", "trace", "train"]

__version__ = "0.1.0"

Precision: TypeAlias = Literal["float32", "int8"]
P = TypeVar("P", bound="AnyPredictor")


def __dir__() -> list[str]:
    return sorted(__all__)


@overload
def load(
    model: str | Path, device: "Device" = "auto", precision: Precision = "float32", *, as_: type[P], task: None = None
) -> P: ...
@overload
def load(
    model: Literal["en-de"], device: "Device" = "auto", precision: Precision = "float32", *, task: None = None
) -> "Translator": ...
@overload
def load(
    model: str | Path, device: "Device" = "auto", precision: Precision = "float32", *, task: str | None = None
) -> "AnyPredictor": ...
def load(
    model: str | Path,
    device: "Device" = "auto",
    precision: Precision = "float32",
    *,
    as_: "type[AnyPredictor] | None" = None,
    task: str | None = None,
) -> "AnyPredictor":
    """Load a trained model for use, as a `Translator` or the predictor of another task.

    With the class of its predictor, as in `heedful.load("runs/reviews", as_=Classifier)`, type checkers know it.

    Args:
        model: the folder of a model, a checkpoint or a run; or the name of a bundled model, such as "en-de".
        device: the device to compute on: "auto", "cpu", "cuda", or a device of torch.
        precision: "float32", or "int8": less memory and almost the same results, on a CPU. It is faster (up to 2.6
            times) where the processor multiplies 8-bit integers (VNNI) and the model is large; a small model gains
            little or nothing, and without VNNI it is slower.
        as_: the class of the predictor, from `heedful.predictors`; None: that of the model's task. As a `Retriever`
            any model of one text, such as a BERT or a GPT, gives sentence vectors: the means of its hidden states.
        task: the task that the model is to have, as in its recipe; None: any task. "ranking" is as a `Retriever`.

    Raises:
        InputError: there is no such model or precision, its files are damaged, the device cannot be used, or the model
            has another task.
    """
    from heedful.checkpoint.load import load_model
    from heedful.errors import InputError
    from heedful.predictors.predictor import described
    from heedful.predictors.retriever import Retriever

    if not isinstance(model, str | PathLike):
        raise InputError(f"{described(model)} is no model to load; give its folder, or the name of a model in the box")
    loaded = load_model(fspath(model), device, precision)
    own = loaded.recipe.task
    if task not in (None, own):
        encoder = loaded.encoder() if task == "ranking" else None
        if not isinstance(encoder, Retriever):
            raise InputError(f'{model} is a model for the task "{own}", and not "{task}"; load it with task="{own}"')
        return encoder
    return loaded.use() if as_ is None else loaded.use_as(as_)


def train(
    recipe: "str | Path | Recipe | Mapping[str, Any]",
    out: str | Path | None = None,
    data: "str | Path | Iterable[Any] | Mapping[str, Any] | None" = None,
    set: Mapping[str, Any] | None = None,
    console: "Console | None" = None,
    callbacks: Iterable[object] = (),
    allow_change: Iterable[str] = (),
) -> "TrainingResult":
    """Train a model in this process, as `heedful train` does; an interrupted run is resumed.

    `heedful.train("recipes/scenes-en-de", set={"train.max_updates": 100}).predictor.translate("Some text.")` trains
    and uses a translator.

    Ctrl-C finishes the update and saves before it raises a KeyboardInterrupt; the same call resumes.

    Args:
        recipe: a TOML file or a folder with a `config.toml`; or a `Recipe`, or nested mappings like the tables of one.
        out: the folder of the run; None: "runs/NAME", by the name of the recipe.
        data: the folder where the recipe's relative data paths start; None: the folder that the recipe names. Or the
            training data itself: an iterable of rows (dictionaries, tuples or texts), a dictionary of columns, or a
            data frame; or a dictionary of such data with the keys "train", "valid" and "test". Images, audio and
            videos are files, bytes, images of Pillow, arrays or tensors.
        set: other values for settings of the recipe, such as `{"train.seed": 2}` or `{"train": {"seed": 2}}`.
        console: the console for progress; None: standard error, or below the cell of a notebook. A
            `rich.console.Console(quiet=True)` shows nothing.
        callbacks: objects with one or several of the methods `on_update(event)`, `on_validation(event)` and
            `on_end(event)`; see `heedful.training.callbacks`. If one raises an exception, the run is saved and the
            exception is raised here. Of several processes the first one calls its callbacks.
        allow_change: keys of the recipe, such as "optimizer.lr", that may differ from those of the run that resumes.

    Returns:
        The result of the run: its folder, its scores, its log, and the model, ready for use.

    Raises:
        InputError: the recipe, the data or the folder cannot be used.
        RunError: the disk is full, or the loss has diverged; checkpoints stay valid.
    """
    from heedful.training.in_process import train as run

    return run(recipe, out, data, set or {}, console, callbacks, allow_change)


# `import heedful.train.in_process` is a former name that leads to `heedful.training`; its modules are found here.
train.__dict__ = former_names.install()


@overload
def trace(
    model: "str | Path | AnyPredictor",
    text: "str | PathLike[str] | bytes | np.ndarray",
    target: str | None = None,
    keep: str | Collection[str] = ("*",),
) -> "Trace": ...
@overload
def trace(
    model: "str | Path | AnyPredictor",
    text: "Iterable[str | PathLike[str] | bytes | np.ndarray]",
    target: None = None,
    keep: str | Collection[str] = ("*",),
) -> "list[Trace]": ...
def trace(
    model: "str | Path | AnyPredictor",
    text: object,
    target: str | None = None,
    keep: str | Collection[str] = ("*",),
) -> "Trace | list[Trace]":
    """Trace a model on a text, or on each of several texts: run the model and record its intermediate values.

    A language model reads the text alone; to trace a continuation as well, give it as the target.

    `heedful.trace("en-de", "Two dogs are running.")["dec.0.cross.attn"]` gives attention weights of the first layer.

    Args:
        model: what `load` takes, or what it returns.
        text: the input. A string has one trace, an iterable of strings a list of traces.
            For a model of images or audio: the name of a file, its bytes, or an array of pixels or samples.
        target: the output that a translator, captioner or language model is to have written, instead of its own; or
            the second text of a pair. A target belongs to one text.
        keep: names of `heedful.inspector.capture.taps`, or patterns such as "dec.*.cross.attn".

    Raises:
        InputError: a text is empty or too long, a file cannot be read, there is no such tap, or for the reasons of
            `load`.
    """
    from heedful.errors import InputError
    from heedful.inspector.capture.forward_inputs import user_input
    from heedful.inspector.capture.trace import trace as traced
    from heedful.predictors.media_reader import SINGLE
    from heedful.predictors.predictor import InputKind, as_text

    if target is not None and not isinstance(text, SINGLE):
        raise InputError("a target belongs to one text; trace each text with its own target")
    subject = load(model) if isinstance(model, str | PathLike) else model
    output = None if target is None else as_text(target)
    inputs = InputKind("text", SINGLE, lambda one: user_input(subject, one), "a string, or the name of a file")
    return inputs.one_or_all(lambda values: (traced(subject, one, output, keep) for one in values), text)


def look(
    model: "str | Path | AnyPredictor", text: str, target: str | None = None, head: tuple[str, int] | None = None
) -> "View":
    """Show what a model computes on a text as an interactive page (inspector).

    A notebook shows the page by itself, and `heedful.look("en-de", "Two dogs are running.").save("page.html")` writes
    a file that any browser opens without a server.

    Args:
        model: what `load` takes, or what it returns.
        text: the input; a language model continues it. For a model of images or audio: the name of a file.
        target: the output that the model is to have written, as in `trace`.
        head: the attention head whose formula can be followed on the page, such as ("dec.1.cross", 2), counted from 0
            as in a trace; None: the first head of the last block.

    Raises:
        InputError: the text is empty or too long, a file cannot be read, there is no such model or head, or the page
            was not built.
    """
    from heedful.inspector.look import Question
    from heedful.inspector.page import check_pair, view
    from heedful.predictors.predictor import as_text

    output = None if target is None else as_text(target)
    check_pair(head)
    return view(model, Question(text=as_text(text), target=output), head)
