"""Reading of the batches of a run in the order of training: by the training process itself, or ahead of it by workers.

A batch is a function of its epoch and the numbers of its examples, so that workers change no result.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.distributed import Reducer, local_processes
from heedful.machine.process import usable_cores
from heedful.tasks.dataset import Batch, Dataset

CPU = torch.device("cpu")

Planned = tuple[int, np.ndarray]  # a batch that is not read yet: its epoch, and the numbers of its examples


def planned(
    plan: Callable[[int], Sequence[np.ndarray]], reducer: Reducer, accumulate: int, epoch: int, start: int
) -> Iterator[Planned]:
    """Iterate over the batches of this process, from a place in an epoch on and through all later ones, without end."""
    while True:
        batches = plan(epoch)
        for place in range(start, len(batches), accumulate):
            for ids in reducer.shard(reducer.pad_to_world_size(batches[place : place + accumulate])):
                yield epoch, ids
        epoch, start = epoch + 1, 0


class BatchReader:
    """Function that reads a planned batch of a task; it can be sent to another process."""

    def __init__(self, data: Dataset, device: torch.device) -> None:
        self.data = data
        self.device = device

    def __call__(self, planned: Planned) -> Batch:
        """Read a planned batch."""
        epoch, ids = planned
        return self.data.batch(ids, epoch, self.device)


def read(data: Dataset, batches: Iterable[Planned], device: torch.device) -> Generator[Batch]:
    """Read planned batches one after another, by workers or right here."""
    if count := number_of_workers(data, device):
        from heedful.workers import Workers

        with closing(Workers(BatchReader(data, CPU), count)) as workers:
            yield from (moved(batch, device) for batch in workers.map(batches))
    else:
        yield from map(BatchReader(data, device), batches)


def number_of_workers(data: Dataset, device: torch.device) -> int:
    """Number of workers of this process: what the recipe says, or all cores but one where files are read for a GPU.

    Where processes are not copied, a recipe has to say so: a script that trains is run once more by each new process.
    """
    wanted = data.recipe.train.workers
    if wanted == 0 or (wanted is None and not (device.type == "cuda" and data.reads_files)):
        return 0
    from heedful.workers import can_have_workers, copies_processes

    if not can_have_workers():
        return 0
    if wanted is not None:
        return wanted
    return max(0, usable_cores() // local_processes() - 1) if copies_processes() else 0


def moved(value: Any, device: torch.device) -> Any:
    """Copy all tensors of a batch to a device: those of its fields, and of tuples and dataclasses in them."""
    if isinstance(value, Tensor):
        return value.to(device, copy=True)  # shared memory and its descriptor are free again
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: moved(getattr(value, field.name), device) for field in fields(value)})
    if isinstance(value, tuple):
        parts = [moved(part, device) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
