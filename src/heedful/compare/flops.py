"""FLOPs of one training update, and of decoding one sentence: counted while they run.

Counted are the matrix products and convolutions that torch computes, 2 FLOPs for each multiplication with its addition;
sums, norms and activations, which take few, are not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heedful.config.schema import Recipe
from heedful.tasks import Task
from heedful.train.training_step import TrainingStep

UPDATES = 2  # updates to take the mean of


def count_flops(call: Callable[[], object]) -> int:
    """Count the FLOPs of a call."""
    with taken_apart(), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


@contextmanager
def taken_apart() -> Iterator[None]:
    """Let torch compute fused attention and recurrent layers by their matrix products, which can be counted."""
    mkldnn = torch.backends.mkldnn
    before, *_ = mkldnn.set_flags(_enabled=False)
    try:
        with torch.backends.cudnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        mkldnn.set_flags(_enabled=before)


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
    ids = task.epoch(0)[: UPDATES * recipe.train.accumulate]
    batches = [task.batch(some, 0, device) for some in ids]
    updates = [batches[i : i + recipe.train.accumulate] for i in range(0, len(batches), recipe.train.accumulate)]
    with torch.enable_grad():
        counts = [count_flops(lambda some=some, n=n: step.update(some, n)) for n, some in enumerate(updates, start=1)]
    return sum(counts) / len(counts)
