"""Layouts of a training over GPUs: weights on each of them (DDP), or a share on each (FSDP2), by arithmetic."""

from dataclasses import dataclass

from heedful.config.schema import Recipe
from heedful.plan.hardware import Accelerator
from heedful.plan.update import Memory

USABLE = 0.9  # share of a GPU's memory: the rest is for the driver, kernels, communication and fragmentation


@dataclass(frozen=True)
class Layout:
    """Layout of a training over GPUs, with the memory of one of them in bytes.

    Attributes:
        name: "replicated" (DDP) or "sharded" (FSDP2).
        weights: the float32 weights that it keeps.
        working: the weights that compute, where they are others: a bfloat16 copy, or the gathered weights of blocks.
        optimizer: the state of the optimiser.
        gradients: the gradients, in float32.
        batch: what the largest batch takes: activations and work space.
        total: the most at a time.
        fits: True if that is no more than the usable share of its memory.
        checkpointed: the total with activation checkpointing, an estimate; None in models that are no stacks of blocks.
        volume: bytes that it sends in an update.
        communication: seconds for that, with nothing computed at the same time.
    """

    name: str
    weights: float
    working: float
    optimizer: float
    gradients: float
    batch: float
    total: float
    fits: bool
    checkpointed: float | None
    volume: float
    communication: float


def replicated(recipe: Recipe, memory: Memory, gpus: int, accelerator: Accelerator, link: float) -> Layout:
    """Lay out a training with all weights on each GPU; gradients are summed in float32 once an update (ring)."""
    volume = 2 * (gpus - 1) / gpus * memory.gradients
    return Layout(
        name="replicated",
        weights=memory.weights,
        working=memory.replica,
        optimizer=memory.optimizer,
        gradients=memory.gradients,
        batch=memory.work,
        total=memory.peak,
        fits=memory.peak <= USABLE * accelerator.memory,
        checkpointed=checkpointed(recipe, memory, memory.peak),
        volume=volume,
        communication=volume / link,
    )


def sharded(recipe: Recipe, memory: Memory, gpus: int, accelerator: Accelerator, link: float, batches: int) -> Layout:
    """Lay out a training with an equal share of weights, gradients and optimiser state on each GPU (FSDP2).

    Gathered at a time are two blocks, of which one computes, and whatever is in no block, such as embeddings, in the
    precision of the run; one block's gradients are whole before they are shared out. Weights are gathered for the
    forward and for the backward pass of each batch, and gradients are summed after each.
    """
    size = 1.0 if recipe.train.precision == "float32" else 0.5  # of gathered weights, relative to float32
    outside = memory.weights - memory.blocks
    working = 0.0 if gpus == 1 else size * (2 * memory.block + outside) + memory.block
    weights, optimizer, gradients = (part / gpus for part in (memory.weights, memory.optimizer, memory.gradients))
    total = weights + working + optimizer + gradients + memory.work
    moved = size * 2 * memory.weights + memory.gradients
    volume = batches * (gpus - 1) / gpus * moved
    return Layout(
        name="sharded",
        weights=weights,
        working=working,
        optimizer=optimizer,
        gradients=gradients,
        batch=memory.work,
        total=total,
        fits=total <= USABLE * accelerator.memory,
        checkpointed=checkpointed(recipe, memory, total),
        volume=volume,
        communication=volume / link,
    )


def checkpointed(recipe: Recipe, memory: Memory, total: float) -> float | None:
    """Estimate the memory with activation checkpointing: each block keeps its input, and one all of its activations."""
    if not memory.depth:
        return None
    bytes_of_number = 4 if recipe.train.precision == "float32" else 2
    inputs = memory.depth * recipe.train.batch_tokens * recipe.model.d_model * bytes_of_number
    kept = inputs + memory.activations / memory.depth
    return total - max(0.0, memory.activations - kept)
