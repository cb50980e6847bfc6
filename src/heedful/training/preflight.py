"""Preflight checks: find what would stop a run before it starts: files, device, memory, processes that disagree."""

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful.architectures import Model, weights
from heedful.architectures.backbone import Backbone
from heedful.checkpoint import Checkpoints, DamagedError
from heedful.checkpoint.lock import check_claimable
from heedful.config.families import FAMILIES
from heedful.config.keys import is_per_machine
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import CorpusConfig, DataConfig, Recipe, TrainConfig
from heedful.config.user_code import errors_of_own_code, import_class, own_code
from heedful.distributed import Reducer
from heedful.errors import InputError, RunError
from heedful.machine import choose_device
from heedful.machine.memory import is_out_of_memory, total_memory
from heedful.nn.meta_device import meta_device, unallocated
from heedful.tasks import Task, import_task
from heedful.tasks.dataset import Dataset
from heedful.tasks.task import check, check_metrics, remedy_of_own
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.training.logger import tensorboard
from heedful.training.resume import check_same_run
from heedful.training.training_step import TrainingStep


def check_agreement(reducer: Reducer, own: Mapping[str, Any]) -> None:
    """Check that all processes of a training have the same JSON values."""
    first, *others = reducer.all_gather(dict(own))
    for rank, values in enumerate(others, start=1):
        other = sorted(name for name in first.keys() | values.keys() if values.get(name) != first.get(name))
        if other:
            raise RunError(
                f"process {rank} has other {', '.join(other)} than process 0: all machines need the same "
                "version of heedful, the same recipe and the same files"
            )


def settings(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe by their dotted keys, without those that each machine has for itself.

    Paths below the folder of the data are relative to it.
    """
    options = type(recipe.model)
    values = {key: value for key, value in dotted(recipe_to_dict(recipe)) if not is_per_machine(key, options)}
    root = recipe.data.root
    return {key: value.removeprefix(root) if isinstance(value, str) else value for key, value in values.items()}


def checksum(model: nn.Module) -> int:
    """Compute a checksum (CRC-32) of all weights of a model."""
    crc = 0
    for tensor in weights(model).values():
        crc = zlib.crc32(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, crc)
    return crc


PARAMETER_BYTES = (
    8  # bytes that training takes for a parameter: its weight and its gradient, whatever the optimiser adds
)


def check_model_fits(recipe: Recipe, build: Callable[[], nn.Module], device: torch.device) -> None:
    """Check that the memory of this machine can hold a model with its gradient, before the model is built."""
    # The model is built once without memory, so that a recipe of a terabyte is refused and the machine does not hang.
    memory = total_memory()
    with unallocated():
        parameters = count(build())
    size = PARAMETER_BYTES * parameters
    if device.type == "cpu" and size > memory:
        raise RunError(
            f"the model has {parameters:,} parameters, which take {size / 1e9:,.0f} GB with their gradient, and "
            f"this machine has {memory / 1e9:,.0f} GB of memory: give a smaller model, such as --set "
            f"model.d_model={recipe.model.d_model // 2}"
        )


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def try_largest_batch(step: TrainingStep, data: Dataset, batches: Sequence[np.ndarray], device: torch.device) -> None:
    """Compute the gradient of the largest batch of an epoch and drop it, so that too little memory shows at once.

    The result of the run stays the same to the last bit: no weight changes, and each batch draws its own numbers. Of
    several processes each tries the batch by itself.
    """
    # Of equally large ones that of the longest examples.
    largest = max(batches, key=lambda ids: (data.cells(ids), -len(ids)))
    with memory_errors(step.recipe.train, lambda: f"the largest batch, of {len(largest)} examples"):
        step.rehearse(data.batch(largest, 0, device))


def whole_epoch_line(train: TrainConfig, batches: Sequence[np.ndarray]) -> str:
    """Say that each update reads all training data, where a batch is larger than that; empty if none is."""
    if len(batches) > train.accumulate:
        return ""
    accumulated = f" with train.accumulate = {train.accumulate:,}" if train.accumulate > 1 else ""
    return (
        f"each update reads all training data, {sum(map(len, batches)):,} examples or windows, as train.batch_tokens = "
        f"{train.batch_tokens:,}{accumulated} is not smaller; with a lower one a pass over the data makes more updates"
    )


@contextmanager
def memory_errors(train: TrainConfig, what: Callable[[], str]) -> Iterator[None]:
    """Context manager: turns an error about memory into one that names what did not fit, and the remedy."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise RunError(
            f"memory does not suffice for {what()}: begin another run with "
            f"--set train.batch_tokens={max(1, train.batch_tokens // 2)} "
            f"--set train.accumulate={2 * train.accumulate}, as many tokens an update in smaller batches; with more "
            "memory the same command goes on"
        ) from error


EXAMPLES = 100  # number of examples read from each corpus
LANGUAGES = ("source_language", "target_language")


@contextmanager
def collected(problems: list[str]) -> Iterator[None]:
    """Collect the message of an InputError in the block, and continue after it, so that one error can list all."""
    try:
        yield
    except InputError as error:
        problems.append(str(error))


def check_processes(recipe: Recipe, count: int, local: int) -> None:
    """Check that each process gets a batch of an update, and its own GPU unless it runs on the CPU."""
    train = recipe.train
    if count > 1 and ":" in train.device:
        raise InputError(f'train.device = "{train.device}" is one GPU; several processes need "cuda", one each')
    gpus = torch.cuda.device_count() if torch.cuda.is_available() and train.device != "cpu" else local
    if gpus < local:
        raise InputError(
            f"{local} processes need as many GPUs, and torch finds {gpus} here: fewer processes, or --set "
            "train.device=cpu"
        )
    if train.accumulate < count:
        size = train.batch_tokens * train.accumulate // count
        raise InputError(
            f"train.accumulate = {train.accumulate}: the batches of an update are shared among the processes, and "
            f"{count} processes need as many. The same tokens in more batches: --set train.accumulate={count} "
            f"--set train.batch_tokens={size}"
        )


def preflight(recipe: Recipe, folder: Path | None = None, further: Sequence[CorpusConfig] = ()) -> Recipe:
    """Check a recipe against its files, the models it starts from and this machine.

    Args:
        recipe: the recipe of the run.
        folder: the folder of the run; None: the folder is not checked.
        further: corpora outside the training that are checked too, such as the test set.

    Returns:
        The recipe in the shape of the models of its warm start, with the classes or tags of its data.
    """
    problems: list[str] = []
    task = import_task(recipe.task)
    for name in recipe.evaluate.metrics:
        import_class(name, "evaluate.metrics")
    with collected(problems):
        if recipe.train.start is not None or recipe.train.start_decoder is not None:
            from heedful.training.warm_start import with_warm_start

            recipe = with_warm_start(recipe)
        task.dataset.check(recipe)
    with collected(problems):
        check_model(recipe)
    with collected(problems):
        check_metrics(task, recipe)
    with collected(problems):
        check_machine(recipe)
    with collected(problems):
        if recipe.model.source_vectors is not None or recipe.model.target_vectors is not None:
            from heedful.architectures.word_vectors import check_vectors

            check_vectors(recipe)
    for key in LANGUAGES:
        with collected(problems):
            check_code(recipe.data, key)
    if folder is not None:
        with collected(problems):
            check_claimable(folder)
    recipe = checked_data(task, recipe, further, problems)
    if problems:
        messages = list(dict.fromkeys(problems))
        several = "\n  ".join([f"{len(messages)} problems would stop this run", *messages])
        raise InputError(several if len(messages) > 1 else messages[0])

    # What follows takes longer, and makes sense only for a recipe without other problems.
    check_start(task, recipe)
    if folder is not None:
        check_newest(recipe, folder)
    return recipe


def check_model(recipe: Recipe) -> None:
    """Check that the model of a recipe can learn the task, and that a custom model or task can be built."""
    task = import_task(recipe.task)
    check(task, recipe)
    if not own_code(recipe):
        return
    from heedful.tasks.model_size import SizeOnly, vocabulary_sizes

    # A custom model is built without values, on the meta device.
    labels = recipe.data.labels or ("a", "b")  # the data, which is not read yet, has the classes
    recipe = replace(recipe, data=replace(recipe.data, labels=labels))
    tokenizers = TokenizerPair(*map(SizeOnly, vocabulary_sizes(recipe)))
    with errors_of_own_code(recipe, "the model cannot be built"), meta_device():
        model = task.build(recipe, tokenizers)
    backbone = getattr(model, "backbone", None)
    if not isinstance(model, Model) or (backbone is not None and not isinstance(backbone, Backbone)):
        key, name = next(iter(own_code(recipe).items()))
        raise InputError(f'{key} = "{name}": it does not make a model of heedful; {remedy_of_own(task)}')


def check_machine(recipe: Recipe) -> None:
    choose_device(recipe.train.device)
    if recipe.train.tensorboard:
        with TemporaryDirectory() as folder:
            tensorboard(Path(folder), 0).close()


def check_code(data: DataConfig, key: str) -> None:
    """Check that a language that the data names has a code; scores depend on the language."""
    code = getattr(data, key)
    if code != getattr(DataConfig, key):
        from heedful.text.languages import check_language

        check_language(code, f"data.{key}")


def check_newest(recipe: Recipe, folder: Path) -> None:
    """Check that the run can resume from the newest checkpoint of a folder, if there is one."""
    saved = None
    with suppress(DamagedError):  # a run puts a damaged checkpoint aside and resumes from the one before
        saved = Checkpoints(folder, recipe.train.keep_last).load_latest(strict=True).checkpoint
    if saved:
        check_same_run(recipe, saved)


def checked_data(task: type[Task], recipe: Recipe, further: Sequence[CorpusConfig], problems: list[str]) -> Recipe:
    """Check the beginning of each corpus; return the recipe with the classes or tags of its data."""
    read_beginnings(task, recipe, further, problems)
    if problems:
        return recipe
    resolved = recipe
    with collected(problems):
        resolved = task.dataset.resolve(recipe)
    if resolved != recipe:  # now that the classes are known, no example may have another
        read_beginnings(task, resolved, further, problems)
    return resolved


def read_beginnings(task: type[Task], recipe: Recipe, further: Sequence[CorpusConfig], problems: list[str]) -> None:
    """Read the first examples of each corpus, and collect their errors; a missing folder of data is one error."""
    root, valid = Path(recipe.data.root), [recipe.data.valid] if recipe.data.valid else []
    corpora = (*recipe.data.train, *valid, *further)
    if not root.is_dir() and not all(Path(corpus.source).is_absolute() for corpus in corpora):
        from heedful.storage.paths import no_folder

        problems.append(no_folder(root, "name the one that holds it with --data", "folder of data"))
        return
    for corpus in corpora:
        with collected(problems):
            deque(islice(task.dataset.peek(corpus, recipe), EXAMPLES), maxlen=0)


def check_start(task: type[Task], recipe: Recipe) -> None:
    """Check that the weights of the models of a warm start have a place in the model, and what is frozen."""
    path = recipe.tokenizer.path
    untrained = path is None and FAMILIES[recipe.model.family].pairs  # the tokenizer of what a captioner writes
    if (recipe.train.start or recipe.train.start_decoder) and not untrained:
        from heedful.training.warm_start import freeze, transfers

        tokenizers = TokenizerPair.load(Path(path)) if path else NoTokenizers()
        with meta_device():
            model = task.build(recipe, tokenizers)
        transfers(recipe, model)
        freeze(model, recipe)
