"""FLOPs of the training updates of a run: counted while they run, as `heedful.machine.flops` says."""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn

from heedful.config.schema import Recipe
from heedful.machine.flops import count_flops
from heedful.tasks import Task
from heedful.train.training_step import TrainingStep

UPDATES = 2  # updates to take the mean of


def flops_per_update(task: Task, model: nn.Module, recipe: Recipe) -> float:
    """Count the FLOPs of a training update, forward, backward and optimiser: the mean of the first updates of a run.

    Args:
        task: the task with the training data.
        model: a model of the recipe; its weights stay as they are.
        recipe: the recipe of the run.
    """
    plain = replace(recipe, train=replace(recipe.train, compile=False, precision="float32"))
    trained = deepcopy(model)
    step = TrainingStep(trained, task.loss, plain)
    device = next(trained.parameters()).device
    ids = task.data.epoch(0)[: UPDATES * recipe.train.accumulate]
    batches = [task.data.batch(some, 0, device) for some in ids]
    updates = [batches[i : i + recipe.train.accumulate] for i in range(0, len(batches), recipe.train.accumulate)]
    with torch.enable_grad():
        counts = [count_flops(lambda some=some, n=n: step.update(some, n)) for n, some in enumerate(updates, start=1)]
    return sum(counts) / len(counts)
