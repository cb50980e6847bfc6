"""Batches of a plan: a typical one, from which the speed follows, and the largest one, which decides on the memory."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from heedful.config.schema import Recipe
from heedful.data.preparation.digest import data_digest
from heedful.data.preparation.prepared_data import REPORT, nothing_made
from heedful.errors import InputError
from heedful.plan.corpus import longest_sentence, task_on_paper
from heedful.plan.paper import CPU
from heedful.storage.paths import no_folder
from heedful.tasks import Task, find_task
from heedful.tasks.parts.sequence_to_sequence import Pairs
from heedful.tasks.task import Batch

SAMPLE = 32  # batches of an epoch that are looked at


@dataclass(frozen=True)
class PlannedBatches:
    """Batches of a recipe, real or made up.

    Attributes:
        task: the task.
        typical: a batch with about as many tokens as the others.
        largest: a batch with the longest texts.
        tokens: the mean number of real tokens of a batch.
        epoch: the number of batches of an epoch; None where there is no data.
        origin: in words, where the batches come from.
    """

    task: Task
    typical: Batch
    largest: Batch
    tokens: float
    epoch: int | None
    origin: str


def batches_of(recipe: Recipe, length: int, prepared: Path | None) -> PlannedBatches:
    """Return the batches of a recipe from prepared data, or make some up.

    Args:
        recipe: the recipe.
        length: tokens of a typical sentence of a translator, for batches that are made up.
        prepared: the folder of the prepared data.

    Raises:
        InputError: there is no such data, it is of another recipe, `length` is more than the recipe allows, or batches
            of this task cannot be made up.
    """
    if prepared is not None:
        return real_batches(recipe, prepared)
    if not issubclass(find_task(recipe.task).dataset, Pairs):
        task = task_on_paper(recipe, length)
        batch = largest_of(task, task.data.epoch(0))
        return PlannedBatches(task, batch, batch, batch.tokens, None, f"texts of {recipe.data.max_length} tokens")
    longest = longest_sentence(recipe)
    if length > longest:
        raise InputError(f"--length {length}: this recipe's sentences have {longest} tokens at most")
    task, extreme = task_on_paper(recipe, length), task_on_paper(recipe, longest)
    typical = largest_of(task, task.data.epoch(0))
    largest = largest_of(extreme, extreme.data.epoch(0))
    origin = f"sentences of {length} tokens on both sides, of {longest} in the largest batch"
    return PlannedBatches(task, typical, largest, typical.tokens, None, origin)


def real_batches(recipe: Recipe, prepared: Path) -> PlannedBatches:
    """Look at some batches of prepared data.

    Raises:
        InputError: there is no such data, or it was prepared from another recipe or other files.
    """
    kind = find_task(recipe.task)
    recipe = kind.dataset.resolve(recipe)
    check_prepared(recipe, prepared)
    with nothing_made():
        task = kind.prepare(recipe, prepared, lambda _: None)
    epoch = task.data.epoch(0)
    some = [epoch[i] for i in np.linspace(0, len(epoch) - 1, min(SAMPLE, len(epoch))).round().astype(int)]
    sample = [task.data.batch(ids, 0, CPU) for ids in some]
    tokens = sum(batch.tokens for batch in sample) / len(sample)
    typical = min(sample, key=lambda batch: abs(batch.tokens - tokens))
    return PlannedBatches(task, typical, largest_of(task, epoch), tokens, len(epoch), "the prepared data")


def check_prepared(recipe: Recipe, prepared: Path) -> None:
    """Check that a folder holds the prepared data of a recipe, so that nothing has to be prepared.

    Raises:
        InputError: it does not.
    """
    try:
        digest = json.loads((prepared / REPORT).read_text(encoding="utf-8"))["digest"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "it is RUN/data of a run"
        problem = f"{prepared}: holds no prepared data; {remedy}" if prepared.is_dir() else no_folder(prepared, remedy)
        raise InputError(f"--prepared {problem}") from error
    if not str(digest).startswith(data_digest(recipe)):
        raise InputError(f"--prepared {prepared}: prepared from other data or with other settings than the recipe's")


def largest_of(task: Task, epoch: Sequence[np.ndarray]) -> Batch:
    """Find the batch that needs the most memory: of those with the fewest, and so the longest, texts the fullest."""
    longest = sorted(epoch, key=len)[:SAMPLE]
    return max((task.data.batch(ids, 0, CPU) for ids in longest), key=cells)


def cells(batch: Batch) -> int:
    """Return the number of values in the largest tensor of a batch, padding included."""
    return max(value.numel() for value in vars(batch).values() if isinstance(value, torch.Tensor))
