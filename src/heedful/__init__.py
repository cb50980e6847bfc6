"""heedful: a Transformer toolkit to train, use, evaluate and inspect translators, BERT and GPT.

`heedful.load("en-de").translate("Where is the train station?")` uses the bundled model.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from heedful import former_names

if TYPE_CHECKING:  # so that importing heedful does not import torch
    import numpy as np
    import torch
    from rich.console import Console

    from heedful.config.schema import Recipe
    from heedful.convert.exporter import Export
    from heedful.inspector.capture.trace import Trace
    from heedful.inspector.page import View
    from heedful.predictors import AnyPredictor, Translator
    from heedful.training.in_process import TrainingResult

    Device: TypeAlias = str | torch.device

__all__ = ["__version__", "export", "load", "look", "trace", "train"]

__version__ = "0.1.0"

Precision: TypeAlias = Literal["float32", "int8"]
Engine: TypeAlias = Literal["auto", "torch", "ctranslate2"]
P = TypeVar("P", bound="AnyPredictor")


def __dir__() -> list[str]:
    return sorted(__all__)


@overload
def load(
    model: str | Path | Sequence[str | Path],
    device: "Device" = "auto",
    precision: Precision = "float32",
    *,
    as_: type[P],
    task: None = None,
    engine: Engine = "torch",
) -> P: ...
@overload
def load(
    model: Literal["en-de"],
    device: "Device" = "auto",
    precision: Precision = "float32",
    *,
    task: None = None,
    engine: Engine = "torch",
) -> "Translator": ...
@overload
def load(
    model: str | Path | Sequence[str | Path],
    device: "Device" = "auto",
    precision: Precision = "float32",
    *,
    task: str | None = None,
    engine: Engine = "torch",
) -> "AnyPredictor": ...
def load(
    model: str | Path | Sequence[str | Path],
    device: "Device" = "auto",
    precision: Precision = "float32",
    *,
    as_: "type[AnyPredictor] | None" = None,
    task: str | None = None,
    engine: Engine = "torch",
) -> "AnyPredictor":
    """Load a trained model for use, as a `Translator` or the predictor of another task.

    Pass the predictor class, as in `heedful.load("runs/reviews", as_=Classifier)`, to get a static type.

    Args:
        model: The folder of a model, a checkpoint or a run; the name of a bundled model, such as "en-de"; or
            "hf:OWNER/NAME" or "hf:OWNER/NAME@REVISION", a model on the Hugging Face Hub, which is downloaded. A list of
            models is loaded as an ensemble: models that write text, such as translators, with the same tokenizers; the
            probability of a token is the mean of its probabilities under all models.
        device: The device to run on: "auto", "cpu", "cuda", or a torch device.
        precision: "float32"; or "int8", which needs a quarter of the memory for the weights, is usually faster for many
            texts at once, and changes results slightly. "int8" needs `engine="ctranslate2"` or `engine="auto"`.
        as_: The predictor class, from `heedful.predictors`; by default, the class for the model's task. Any encoder
            or language model of text, such as a BERT or a GPT, can be loaded as a `Retriever`: the vector of a sentence
            is then the mean of the model's hidden states.
        task: The task that the model must have, as named in a recipe; by default, any task. "ranking" loads any encoder
            or language model of text as a `Retriever`.
        engine: The inference engine: "torch"; "ctranslate2", which runs on CPUs and supports text-to-text models,
            language models (greedy decoding and scoring only), sentence vectors, and Whisper models; or "auto", which
            selects CTranslate2 if, with the recipe's settings, its results are identical to those of torch.
    """
    from heedful.errors import InputError
    from heedful.predictors.predictor import described

    paths: list[str] = []
    for each in model if isinstance(model, list | tuple) else [model]:
        if not isinstance(each, str | PathLike):
            raise InputError(f"{described(each)} cannot be loaded; give a model folder, or the name of a bundled model")
        paths.append(fspath(each))
    if engine != "torch" or precision != "float32":
        from heedful.convert.engine import RANKING, open_for_task
        from heedful.predictors.retriever import Retriever

        use = RANKING if as_ is Retriever else task
        predictor: Any = open_for_task(paths, engine, str(device), precision, use)
        if predictor is not None and (as_ is None or isinstance(predictor, as_)):
            return predictor

    from heedful.checkpoint import load_model
    from heedful.predictors.retriever import Retriever
    from heedful.tasks.specs import kind_of_model

    if len(paths) == 1:
        loaded = load_model(paths[0], device)
    else:
        from heedful.checkpoint.ensemble import load_ensemble

        loaded = load_ensemble(paths, device)
    model_task = loaded.recipe.task
    if task not in (None, model_task):
        encoder = loaded.encoder() if task == "ranking" else None
        if not isinstance(encoder, Retriever):
            raise InputError(f'{loaded.name} is {kind_of_model(model_task)}; load it with task="{model_task}"')
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
    """Train a model in this process, as `heedful train` does, or resume an interrupted run.

    `heedful.train("recipes/scenes-en-de", set={"train.max_updates": 100}).predictor.translate("Some text.")` trains
    and uses a translator.

    After Ctrl-C, the current update is finished and the run is saved before a KeyboardInterrupt is raised. The same
    call then resumes the run.

    Args:
        recipe: A TOML file or a folder with a `config.toml`; or a `Recipe`, or nested mappings with the same tables.
        out: The run folder; by default "runs/NAME", where NAME is the recipe's name.
        data: Either the folder that relative data paths in the recipe start from (by default, the folder given in the
            recipe), or the training data. Training data is an iterable of rows (dictionaries, tuples or strings), a
            dictionary of columns, or a data frame; or a dictionary of these with the keys "train", "valid" and "test".
            Images, audio and videos are files, bytes, Pillow images, arrays or tensors.
        set: Settings that override the recipe, such as `{"train.seed": 2}` or `{"train": {"seed": 2}}`.
        console: The console for progress; by default, standard error or the output of a notebook cell.
            `rich.console.Console(quiet=True)` shows nothing.
        callbacks: Objects with one or more of the methods `on_update(event)`, `on_validation(event)` and
            `on_end(event)`; see `heedful.training.callbacks`. If one raises an exception, the run is saved and the
            exception is raised here. With several processes, only the first one calls its callbacks.
        allow_change: Recipe keys, such as "optimizer.lr", whose values may differ from those of the resumed run.

    Returns:
        The result of the run: its folder, its scores, its log, and the model, ready for use.

    Raises:
        RunError: the disk is full, or the loss has diverged; checkpoints stay valid.
    """
    from heedful.training.in_process import train as run

    return run(recipe, out, data, set or {}, console, callbacks, allow_change)


def export(
    model: str | Path,
    folder: str | Path | None = None,
    to: str = "safetensors",
    precision: str | None = None,
    inputs: Iterable[str] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    push: str | None = None,
    *,
    private: bool = False,
) -> "Export":
    """Export a trained model for other machines or programs, as `heedful export` does, and check its outputs.

    `heedful.export("en-de", "out", to="ctranslate2", precision="int8")` writes a folder for `ctranslate2.Translator`.

    Args:
        model: A model as in `load`.
        folder: A new or empty folder to write; with `push`, by default a temporary folder.
        to: The format, a name in `heedful.registry.EXPORTERS`.
        precision: The data type of the stored weights; by default, the format's first one, such as "float32".
        inputs: Texts, or file names for an image or audio model, on which the exported model is compared with the
            original; by default, the recipe's validation set.
        source_language: The ISO 639 code of the source language, such as "en"; by default, as in the recipe.
        target_language: The ISO 639 code of the target language; by default, as in the recipe.
        push: "hf:OWNER/NAME" or "hf:OWNER/NAME@BRANCH", a Hugging Face Hub repository to upload the folder to in one
            commit. It is created if it does not exist.
        private: True to create a private repository.

    Returns:
        The number of parameters, the agreement of the outputs, notes on the export, and with `push` the URL of the
            commit.

    Raises:
        InputError: the format cannot represent the model; the message lists the settings that it supports.
        RunError: the outputs differ, in which case the folder is deleted; or the upload failed, and nothing was
            committed.
    """
    from dataclasses import replace

    from heedful.checkpoint import hub
    from heedful.checkpoint.load import load_model
    from heedful.convert.exporter import export_model, with_languages
    from heedful.errors import InputError
    from heedful.predictors.predictor import described

    if not isinstance(model, str | PathLike):
        raise InputError(f"{described(model)} cannot be exported; give a model folder, or the name of a bundled model")
    with hub.folder_to_push(folder, push) as out:
        loaded = with_languages(load_model(fspath(model)), source_language, target_language)
        exported = export_model(loaded, to, out, precision, inputs, push or ".")
        return exported if push is None else replace(exported, commit=hub.push(out, push, private=private))


# The package `heedful.training` was named `heedful.train` in version 0.1. The function gets the package's attributes:
# `heedful.train.in_process` still works after `import heedful.train.in_process`.
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
    """Run a model on one text, or on each of several texts, and record its intermediate values.

    With a language model, only the given text is traced; to trace a continuation as well, pass it as the target.

    `heedful.trace("en-de", "Two dogs are running.")["dec.0.cross.attn"]` contains the cross-attention weights of the
    first decoder block.

    Args:
        model: A model as in `load`, or a predictor.
        text: The input. A string gives one trace, an iterable of strings a list of traces.
            For an image or audio model: a file name, the bytes of a file, or an array of pixels or samples.
        target: An output to trace instead of the one that a translator or captioner generates; the continuation to
            trace with a language model; or the second text of a pair. Allowed only with a single text.
        keep: Names of the tensors to record, listed in `heedful.inspector.capture.taps`, or patterns such as
            "dec.*.cross.attn".
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
    inputs = InputKind("text", SINGLE, lambda one: user_input(subject, one), "a string or a file name")
    return inputs.one_or_all(lambda values: (traced(subject, one, output, keep) for one in values), text)


def look(
    model: "str | Path | Sequence[str | Path] | AnyPredictor",
    text: str,
    target: str | None = None,
    head: tuple[str, int] | None = None,
) -> "View":
    """Return the inspector, an interactive page that shows a model's computation on a text.

    A notebook displays the page. `heedful.look("en-de", "Two dogs are running.").save("page.html")` writes a file that
    any browser can open without a server.

    Args:
        model: A model as in `load`, or a predictor.
        text: The input; a language model continues it. For an image or audio model: a file name.
        target: An output to show instead of the model's, as in `trace`.
        head: The attention head whose formula the page shows step by step, such as ("dec.1.cross", 2), counted from 0
            as in a trace; by default, the first head of the last block.
    """
    from heedful.inspector.look import Question
    from heedful.inspector.page import check_pair, view
    from heedful.predictors.predictor import as_text

    output = None if target is None else as_text(target)
    check_pair(head)
    return view(model, Question(text=as_text(text), target=output), head)
