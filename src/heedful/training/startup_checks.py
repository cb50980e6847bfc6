"""Checks at the start of training: processes agree, the model fits into memory, and so does the largest batch."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful.architectures import weights
from heedful.config.keys import is_per_machine
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe, TrainConfig
from heedful.distributed.reducer import Reducer
from heedful.errors import InputError, RunError
from heedful.machine.memory import is_out_of_memory, total_memory
from heedful.nn.meta_device import unallocated
from heedful.tasks.dataset import Dataset
from heedful.training.training_step import TrainingStep

PARAMETER_BYTES = 8  # a weight and its gradient in float32; the optimizer needs memory in addition


def check_agreement(reducer: Reducer, own: Mapping[str, Any]) -> None:
    """Check that a mapping of JSON values is the same in all training processes, or raise a RunError."""
    first, *others = reducer.all_gather(dict(own))
    for rank, values in enumerate(others, start=1):
        different = sorted(name for name in first.keys() | values.keys() if values.get(name) != first.get(name))
        if different:
            raise RunError(
                f"process {rank} differs from process 0 in {', '.join(different)}: all machines need the same "
                "version of heedful, the same recipe and the same files"
            )


def shared_settings(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of a recipe by their dotted keys, without those that may differ between machines.

    Paths inside the data folder are made relative to it.
    """
    options = type(recipe.model)
    values = {key: value for key, value in dotted(recipe_to_dict(recipe)) if not is_per_machine(key, options)}
    root = recipe.data.root
    return {
        key: str(Path(value).relative_to(root))
        if isinstance(value, str) and Path(value).is_relative_to(root)
        else value
        for key, value in values.items()
    }


def checksum(model: nn.Module) -> int:
    """Compute a checksum (CRC-32) of all weights of a model."""
    crc = 0
    for tensor in weights(model).values():
        crc = zlib.crc32(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, crc)
    return crc


def check_model_fits(recipe: Recipe, build: Callable[[], nn.Module], device: torch.device) -> None:
    """If the device is a CPU, check that a model and its gradient fit into memory, before the model is built."""
    # Build the model once without allocating memory: a terabyte-sized model is rejected instead of hanging the machine.
    memory = total_memory()
    with unallocated():
        parameters = count_parameters(build())
    size = PARAMETER_BYTES * parameters
    # A GPU raises an error when memory runs out; with a CPU, the system swaps or kills the process.
    if device.type == "cpu" and size > memory:
        raise RunError(
            f"the model has {parameters:,} parameters, which take {size / 1e9:,.0f} GB with their gradient, but "
            f"this machine has {memory / 1e9:,.0f} GB of memory: set a smaller model, such as --set "
            f"model.d_model={recipe.model.d_model // 2}"
        )


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def trained_line(model: nn.Module) -> str:
    """Format a line that says how many weights of a model are trained; return "" if all are."""
    total = count_parameters(model)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return "" if trained == total else f"{trained:,} of {total:,} weights are trained ({trained / total:.2%})"


def try_largest_batch(step: TrainingStep, data: Dataset, batches: Sequence[np.ndarray], device: torch.device) -> None:
    """Compute and discard the gradient of the largest batch of an epoch, so that out-of-memory errors appear at once.

    The result of the run stays the same to the last bit: no weights change, and each batch has its own random numbers.
    If there are several processes, each one tries the batch.
    """
    # Among equally large ones, the batch with the longest examples.
    largest = max(batches, key=lambda indices: (data.cells(indices), -len(indices)))
    with memory_errors(step.recipe.train, lambda: f"the largest batch, of {len(largest)} examples"):
        step.rehearse(data.batch(largest, 0, device))


def whole_epoch_line(train: TrainConfig, batches: Sequence[np.ndarray]) -> str:
    """Format a remark if the batches are so large that each update reads all training data; return "" otherwise."""
    if len(batches) > train.accumulate:
        return ""
    accumulated = f" with train.accumulate = {train.accumulate:,}" if train.accumulate > 1 else ""
    return (
        f"each update reads all training data, {sum(map(len, batches)):,} examples, because all of "
        f"it fits into train.batch_tokens = {train.batch_tokens:,}{accumulated}; for more updates per epoch, lower "
        "train.batch_tokens"
    )


@contextmanager
def memory_errors(train: TrainConfig, what: Callable[[], str]) -> Iterator[None]:
    """Turn an out-of-memory error in the block into a RunError that says what did not fit and suggests a remedy."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise RunError(
            f"out of memory for {what()}: start another run with "
            f"--set train.batch_tokens={max(1, train.batch_tokens // 2)} "
            f"--set train.accumulate={2 * train.accumulate}, for the same tokens per update in smaller batches; with "
            "more memory, the same command resumes this run"
        ) from error


def check_processes(recipe: Recipe, count: int, local: int) -> None:
    """Check that each process gets a batch in each update, and its own GPU unless it runs on the CPU."""
    train = recipe.train
    if count > 1 and ":" in train.device:
        raise InputError(f'train.device = "{train.device}" is one GPU; several processes need "cuda", one GPU each')
    gpus = torch.cuda.device_count() if torch.cuda.is_available() and train.device != "cpu" else local
    if gpus < local:
        raise InputError(
            f"{local} processes need as many GPUs, but torch finds {gpus} here: use fewer processes, or --set "
            "train.device=cpu"
        )
    if train.accumulate < count:
        size = train.batch_tokens * train.accumulate // count
        raise InputError(
            f"{count} processes share the batches of an update, so they need at least {count} batches, but "
            f"train.accumulate = {train.accumulate}; use fewer processes or, for the same tokens in more batches, "
            f"--set train.accumulate={count} --set train.batch_tokens={size}"
        )
