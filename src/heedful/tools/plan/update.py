"""Memory and FLOPs of one training update, computed with tensors that have a shape and a dtype but no memory."""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from heedful.config.schema import Recipe
from heedful.losses import Loss
from heedful.machine.speed import count_flops, without_fused_kernels
from heedful.nn.attention import Attention
from heedful.nn.lora import add_updates
from heedful.nn.meta_device import meta_device
from heedful.nn.named_stacks import stacks
from heedful.tasks import Task
from heedful.tasks.task import Batch
from heedful.training.training_step import TrainingStep
from heedful.training.warm_start import freeze

aten = torch.ops.aten
INDEXED = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)  # operations that take indices or a mask
CPU, GPU = torch.device("cpu"), torch.device("meta")


class Paper(TorchDispatchMode):
    """Mode in which torch computes only the shapes of tensors, and which counts the memory that they would take.

    Token ids and masks stay real, because the sizes of other tensors depend on their values; they are small. Everything
    else is on paper: weights, hidden states, gradients, the optimizer state.

    Args:
        device: `CPU`, or `GPU`, which stands for any other device.

    Attributes:
        live: Bytes of all tensors that currently exist.
        peak: The maximum of `live` since `peak` was last set.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.live = self.peak = 0
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._storages: dict[int, weakref.ref] = {}

    def move(self, model: nn.Module) -> None:
        """Move a model that was built on torch's device "meta" to this device, and count its weights and buffers."""
        for module in model.modules():
            if self.device == CPU:
                self._swap(module)
            elif isinstance(module, Attention):
                module.attention_fn = memory_efficient
            for parameter in module.parameters(recurse=False):
                self._count(parameter)
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, self.copy(buffer))

    def _swap(self, module: nn.Module) -> None:
        """Swap the weights of a module for weights on paper; references to them, such as an optimizer's, stay valid."""
        recurrent = module if isinstance(module, nn.RNNBase) else None
        if recurrent:
            recurrent._flat_weight_refs = []  # torch's own weak references, which prevent a swap
        for parameter in module.parameters(recurse=False):
            if not isinstance(parameter, FakeTensor):
                moved = self.copy(parameter.detach()).requires_grad_(parameter.requires_grad)
                vars(moved)["_is_param"] = True  # by which torch recognises a parameter of another tensor class
                torch.utils.swap_tensors(parameter, moved)
        if recurrent:
            recurrent._init_flat_weights()

    def copy(self, tensor: Tensor) -> Tensor:
        blank = tensor.to("meta")
        copied = FakeTensor(self._fake, blank, CPU) if self.device == CPU else blank
        self._count(copied)
        return copied

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Compute the shapes of an operation's results, and count their memory."""
        del types
        result = self._compute(func, args, dict(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._count(tensor)
        return result

    def _compute(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if not tensors:
            return self._create(func, args, kwargs)
        if not any(map(is_on_paper, tensors)):
            return func(*args, **kwargs)
        if func is aten._local_scalar_dense.default:
            return 1.0  # any value will do for a number that the program reads, such as the norm of a gradient
        if func.overloadpacket in INDEXED:
            # Each mask is replaced by the positions of its True values, whose number determines the result's shape.
            positions: list[Tensor | None] = []
            for index in args[1]:
                positions += index.nonzero().unbind(1) if index is not None and index.dtype == torch.bool else [index]
            args = (args[0], positions, *args[2:])

        def on_paper(value: Any) -> Any:
            return self.copy(value) if isinstance(value, Tensor) and not is_on_paper(value) else value

        args, kwargs = tree_map(on_paper, (args, kwargs))
        return func(*args, **kwargs)

    def _create(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Create a tensor on paper, unless it is filled with integers or booleans, on which other shapes may depend."""
        if "device" not in {argument.name for argument in func._schema.arguments}:
            return func(*args, **kwargs)
        blank = func(*args, **{**kwargs, "device": "meta"})
        if blank.is_floating_point() or func.overloadpacket is aten.empty:
            return self.copy(blank)
        return func(*args, **{**kwargs, "device": "cpu"})

    def _count(self, tensor: Tensor) -> None:
        """Count the storage of a tensor until it is freed. Tensors that share a storage are counted once."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._storages:
            return

        def release(_: weakref.ref) -> None:
            self.live -= size
            del self._storages[key]

        self._storages[key] = weakref.ref(storage, release)
        self.live += size
        self.peak = max(self.peak, self.live)


def is_on_paper(tensor: Tensor) -> bool:
    return tensor.is_meta or isinstance(tensor, FakeTensor)


def memory_efficient(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """Compute attention with CUDA's memory-efficient kernel, which stores no attention weights for the backward pass.

    torch chooses this kernel for a mask that is added to the scores.
    """
    groups = q.size(1) // k.size(1)
    if groups > 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    bias = bias.expand(q.size(0), q.size(1), q.size(2), k.size(2))
    return aten._scaled_dot_product_efficient_attention(q, k, v, bias, True, p)[0]


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
            self.step.gradient([batch], 1, batch.counts, 1)
            # The gradients now exist, as they do from the second batch of an update on.
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
        """Count the FLOPs of a batch, forward and backward, and the FLOPs of the optimizer step.

        Matrix multiplications and convolutions are counted, with 2 FLOPs per multiply-add, as torch runs them: with
        padding, and with the half of causal attention that the mask hides.
        """
        with self.paper:
            passes = count_flops(lambda: self.step.gradient([batch], 1, batch.counts, 1))
            return passes, count_flops(lambda: self.step.step(1.0, 1))


def size_of(parameter: torch.nn.Parameter) -> int:
    return 4 * parameter.numel()
