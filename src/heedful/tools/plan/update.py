"""Memory and FLOPs of one training update, computed with tensors that have a shape and a dtype but no memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from heedful.config.schema import Recipe
from heedful.losses import Loss
from heedful.machine.speed import count_flops, without_fused_kernels
from heedful.nn.lora import add_updates
from heedful.nn.meta_device import meta_device
from heedful.nn.named_stacks import stacks
from heedful.nn.paper import Paper
from heedful.tasks import Task
from heedful.tasks.task import Batch
from heedful.training.training_step import TrainingStep
from heedful.training.warm_start import freeze


@dataclass(frozen=True)
class Memory:
    """Memory that a training update needs, in bytes."""

    weights: int  # the float32 weights, and buffers such as tables of positions
    replica: int  # the bfloat16 copy used for computing, with `precision = "bfloat16"`
    optimizer: int  # the optimizer state
    gradients: int  # the float32 gradients of all trained weights
    activations: int  # what the forward pass of a batch stores for its backward pass
    work: int  # the peak of a batch, activations included, on top of weights, copy, optimizer state and gradients
    # the peak during an update. With a single batch, the gradients grow while the activations shrink, so that the peak
    # is less than the sum of the parts.
    peak: int
    block: int  # the float32 weights of the largest block; 0 for a model without stacks of blocks
    blocks: int  # the float32 weights of all blocks
    depth: int  # the number of blocks

    @property
    def states(self) -> int:
        """Bytes that do not depend on the batch: weights, their copy, gradients and the optimizer state."""
        return self.weights + self.replica + self.optimizer + self.gradients


class UpdateOnPaper:
    def __init__(self, task: Task, recipe: Recipe, device: torch.device) -> None:
        self.recipe = replace(recipe, train=replace(recipe.train, compile=False))
        self.task = task
        self.paper = Paper(device)
        with meta_device():
            self.model = task.build(recipe, task.tokenizers)
            if recipe.train.lora is not None:
                add_updates(self.model, recipe.train.lora)
            freeze(self.model, recipe)
            self.step = TrainingStep(self.model, self.objective, self.recipe)
        self.paper.move(self.model)
        self.weights = self.paper.live
        self.paper.move(self.step.precision.replica)
        self.replica = self.paper.live - self.weights
        self.after_forward = 0
        # The optimizer creates its state in its first step.
        with self.paper:
            for parameter in self.trained:
                parameter.grad = torch.empty_like(parameter)
            self.step.step(1.0, 1)
        self.optimizer = self.paper.live - self.weights - self.replica

    def objective(self, model: torch.nn.Module, batch: Batch) -> Sequence[Loss]:
        """Compute the loss of a batch, and record how much memory is in use after the forward pass."""
        terms = self.task.loss(model, batch)
        self.after_forward = self.paper.live
        return terms

    @property
    def trained(self) -> list[torch.nn.Parameter]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def memory(self, batch: Batch, *, accumulates: bool) -> Memory:
        paper, before = self.paper, self.paper.live
        with without_fused_kernels(), paper:
            paper.peak = before
            self.step.gradient([batch], 1, self.step.divisors(batch.counts, batch.tokens), 1)
            # The gradients now exist, as they do from the second batch of an update on.
            single, paper.peak = paper.peak, paper.live
            self.step.gradient([batch], 2, self.step.divisors(batch.counts, batch.tokens), 1)
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
        """Count the FLOPs of a batch, forward and backward, and the FLOPs of the optimizer step.

        Matrix multiplications and convolutions are counted, with 2 FLOPs per multiply-add, as torch runs them: with
        padding, and with the half of causal attention that the mask hides.
        """
        with self.paper:
            divisors = self.step.divisors(batch.counts, batch.tokens)
            passes = count_flops(lambda: self.step.gradient([batch], 1, divisors, 1))
            return passes, count_flops(lambda: self.step.step(1.0, 1))


def size_of(parameter: torch.nn.Parameter) -> int:
    return 4 * parameter.numel()
