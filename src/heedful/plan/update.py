"""Memory and FLOPs of one training update, found without computing it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from heedful.config.schema import Recipe
from heedful.losses import Loss
from heedful.machine.flops import count_flops, taken_apart
from heedful.nn.meta_device import meta_device
from heedful.nn.stack import stacks
from heedful.plan.paper import Paper
from heedful.tasks import Task
from heedful.tasks.task import Batch
from heedful.train.freezing import freeze
from heedful.train.training_step import TrainingStep


@dataclass(frozen=True)
class Memory:
    """Memory of a training process, in bytes.

    Attributes:
        weights: the float32 weights, and buffers such as tables of positions.
        replica: the bfloat16 copy that computes, in `precision = "bfloat16"`.
        optimizer: the state of the optimiser.
        gradients: the float32 gradients of all trained weights.
        activations: what the forward pass of a batch keeps for its backward pass.
        work: the most that a batch takes beside all of these but the activations, which are part of it.
        peak: the most at any time of an update. In an update of a single batch the gradients grow while the activations
            go, so that it is less than the sum of the others.
        block: the float32 weights of the largest block of a stack; 0 without stacks.
        blocks: the float32 weights of all blocks.
        depth: the number of blocks.
    """

    weights: int
    replica: int
    optimizer: int
    gradients: int
    activations: int
    work: int
    peak: int
    block: int
    blocks: int
    depth: int

    @property
    def states(self) -> int:
        """Bytes that no batch changes: weights, their copy, gradients and the state of the optimiser."""
        return self.weights + self.replica + self.optimizer + self.gradients


class UpdateOnPaper:
    """Training step of a recipe's model on paper.

    Args:
        task: the task.
        recipe: the recipe, with a precision chosen.
        device: the device, see `Paper`.
    """

    def __init__(self, task: Task, recipe: Recipe, device: torch.device) -> None:
        self.recipe = replace(recipe, train=replace(recipe.train, compile=False))
        self.task = task
        self.paper = Paper(device)
        with meta_device():
            self.model = task.build(recipe, task.tokenizers)
            freeze(self.model, recipe)
            self.step = TrainingStep(self.model, self.objective, self.recipe)
        self.paper.move(self.model)
        self.weights = self.paper.live
        self.paper.move(self.step.precision.replica)
        self.replica = self.paper.live - self.weights
        self.after_forward = 0
        self.optimizer = self.first_step()

    def objective(self, model: torch.nn.Module, batch: Batch) -> Sequence[Loss]:
        """Compute the loss of a batch, and note how much memory there is in use after the forward pass."""
        terms = self.task.loss(model, batch)
        self.after_forward = self.paper.live
        return terms

    def first_step(self) -> int:
        """Make the optimiser's first step, with which its state comes into being; return the size of the state."""
        with self.paper:
            for parameter in self.trained:
                parameter.grad = torch.empty_like(parameter)
            self.step.step(1.0, 1)
        return self.paper.live - self.weights - self.replica

    @property
    def trained(self) -> list[torch.nn.Parameter]:
        """The weights that are trained."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def memory(self, batch: Batch, *, accumulates: bool) -> Memory:
        """Find the memory of an update.

        Args:
            batch: the largest batch.
            accumulates: True if an update has more batches than one in this process, so that the gradients of the first
                are there while the others are computed.
        """
        paper, before = self.paper, self.paper.live
        with taken_apart(), paper:
            paper.peak = before
            self.step.gradient([batch], 1, batch.counts, 1)
            single, paper.peak = paper.peak, paper.live
            self.step.gradient([batch], 2, batch.counts, 1)
            several = paper.peak
            self.step.step(1.0, 1)
        gradients = sum(map(size_of, self.trained))
        blocks = [sum(map(size_of, block.parameters())) for stack in stacks(self.model) for block in stack.blocks]
        return Memory(
            weights=self.weights,
            replica=self.replica,
            optimizer=self.optimizer,
            gradients=gradients,
            activations=self.after_forward - before - gradients,
            work=several - before - gradients,
            peak=several if accumulates else single,
            block=max(blocks, default=0),
            blocks=sum(blocks),
            depth=len(blocks),
        )

    def flops(self, batch: Batch) -> tuple[int, int]:
        """Count the FLOPs of a batch, forward and backward, and those of the optimiser's step after it.

        Counted are the products of matrices and convolutions, 2 for each multiplication with its addition, as torch
        computes them: with padding, and with the half of causal attention that the mask hides.
        """
        with self.paper:
            passes = count_flops(lambda: self.step.gradient([batch], 1, batch.counts, 1))
            return passes, count_flops(lambda: self.step.step(1.0, 1))


def size_of(parameter: torch.nn.Parameter) -> int:
    """Return the size of weights in float32, in bytes."""
    return 4 * parameter.numel()
