"""Fit of a run into memory: a model or a batch that is too large is told before the first update, not hours later."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from heedful.config.schema import Recipe, TrainConfig
from heedful.errors import RunError
from heedful.machine.memory import is_out_of_memory, total_memory
from heedful.nn.meta_device import unallocated
from heedful.tasks.dataset import Dataset
from heedful.train.training_step import TrainingStep

LEAST = 8  # bytes that training takes for a parameter: its weight and its gradient, whatever the optimiser adds


def check_model_fits(recipe: Recipe, build: Callable[[], nn.Module], device: torch.device) -> None:
    """Check that the memory of this machine can hold a model with its gradient, before the model is built.

    Args:
        recipe: The recipe.
        build: Builds the model.
        device: Where it is to be trained; a GPU is not asked.

    Raises:
        RunError: The memory of the whole machine does not suffice.
    """
    memory = total_memory()
    with unallocated():
        parameters = count(build())
    if device.type == "cpu" and LEAST * parameters > memory:
        raise RunError(
            f"the model has {parameters:,} parameters, which take {LEAST * parameters / 1e9:,.0f} GB with their "
            f"gradient, and this machine has {memory / 1e9:,.0f} GB of memory: give a smaller model, such as "
            f"--set model.d_model={recipe.model.d_model // 2}"
        )


def count(model: nn.Module) -> int:
    """Count the parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def try_largest_batch(step: TrainingStep, data: Dataset, batches: Sequence[np.ndarray], device: torch.device) -> None:
    """Compute the gradient of the largest batch of an epoch and drop it, so that too little memory shows at once.

    The result of the run stays the same to the last bit: no weight changes, and each batch draws its own numbers. Of
    several processes each tries the batch by itself.

    Args:
        step: The training step, before its first update.
        data: The data of the task.
        batches: The batches of the first epoch, as ids.
        device: Where the model is.

    Raises:
        RunError: Memory does not suffice.
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
    """Context manager: turns an error about memory into one that names what did not fit, and the remedy.

    Raises:
        RunError: Memory does not suffice.
    """
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
