"""Computation on paper: tensors that have a shape and a dtype but no memory, so that any model runs on any machine.

B batch, T queries, S keys, H query heads, G key and value heads, K key size, U value size.
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from heedful.nn.attention import Attention
from heedful.nn.experts import MixtureOfExperts

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
            if isinstance(module, MixtureOfExperts):
                module.rows_per_expert = even_rows
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


def even_rows(choice: Tensor, experts: int) -> list[int]:
    """Divide the rows of a mixture of experts evenly: on paper, no expert is chosen more often than another."""
    return [choice.numel() // experts + (expert < choice.numel() % experts) for expert in range(experts)]


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
