"""Tensors on paper: tensors with a shape and a type but no memory, whose computations are only counted.

The training step itself runs on them, whatever the architecture, so that a plan has no formula of its own for a model.
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

aten = torch.ops.aten
INDEXED = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)  # take positions, or a mask
CPU, GPU = torch.device("cpu"), torch.device("meta")


class Paper(TorchDispatchMode):
    """Mode in which torch computes shapes alone, and keeps account of the memory that the tensors would take.

    Token ids and masks stay real, as the sizes of other tensors depend on their values; they are small. All else is
    on paper: weights, hidden states, gradients, the state of the optimiser.

    Args:
        device: `CPU`, or `GPU` for the way in which a model computes on any other device.

    Attributes:
        live: bytes of all tensors that exist at the moment.
        peak: the most bytes that existed at a time since this was last set.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.live = self.peak = 0
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._known: dict[int, weakref.ref] = {}

    def move(self, model: nn.Module) -> None:
        """Count the weights and buffers of a model that was built on torch's device "meta", as those of this device."""
        for module in model.modules():
            if self.device == CPU:
                self._swap(module)
            elif isinstance(module, Attention):
                module.kernel = memory_efficient
            for parameter in module.parameters(recurse=False):
                self._count(parameter)
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, self.copy(buffer))

    def _swap(self, module: nn.Module) -> None:
        """Put the weights of a module on paper, where whatever refers to them, such as an optimiser, still does."""
        recurrent = module if isinstance(module, nn.RNNBase) else None
        if recurrent:
            recurrent._flat_weight_refs = []  # weak references of torch's own, with which a swap is refused
        for parameter in module.parameters(recurse=False):
            if not isinstance(parameter, FakeTensor):
                moved = self.copy(parameter.detach()).requires_grad_(parameter.requires_grad)
                vars(moved)["_is_param"] = True  # by which torch knows a parameter of another class
                torch.utils.swap_tensors(parameter, moved)
        if recurrent:
            recurrent._init_flat_weights()

    def copy(self, tensor: Tensor) -> Tensor:
        """Copy a tensor to paper, and count it."""
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
            return 1.0  # such as the norm of a gradient
        if func.overloadpacket in INDEXED:
            args = (args[0], positions(args[1]), *args[2:])
        args, kwargs = tree_map(self._copied, (args, kwargs))
        return func(*args, **kwargs)

    def _create(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Create a tensor from nothing: on paper, unless it is one of whole numbers whose values are known."""
        if "device" not in {argument.name for argument in func._schema.arguments}:
            return func(*args, **kwargs)
        blank = func(*args, **{**kwargs, "device": "meta"})
        if blank.is_floating_point() or func.overloadpacket is aten.empty:
            return self.copy(blank)
        return func(*args, **{**kwargs, "device": "cpu"})

    def _copied(self, value: Any) -> Any:
        """Copy a real tensor to paper; whatever else an operation is given stays."""
        return self.copy(value) if isinstance(value, Tensor) and not is_on_paper(value) else value

    def _count(self, tensor: Tensor) -> None:
        """Count the memory of a tensor, once however many views there are, until nothing refers to it."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return

        def release(_: weakref.ref) -> None:
            self.live -= size
            del self._known[key]

        self._known[key] = weakref.ref(storage, release)
        self.live += size
        self.peak = max(self.peak, self.live)


def is_on_paper(tensor: Tensor) -> bool:
    """True for a tensor without memory."""
    return tensor.is_meta or isinstance(tensor, FakeTensor)


def positions(indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Turn the masks among indices into the positions where they are True, which say how many there are."""
    found: list[Tensor | None] = []
    for index in indices:
        found += index.nonzero().unbind(1) if index is not None and index.dtype == torch.bool else [index]
    return found


def memory_efficient(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    rate: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """Attention as CUDA's memory-efficient kernel computes it, which keeps no attention weights for the backward pass.

    It is the one that torch chooses for a mask that is added to the scores.
    """
    groups = q.size(1) // k.size(1)
    if groups > 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    bias = bias.expand(q.size(0), q.size(1), q.size(2), k.size(2))
    return aten._scaled_dot_product_efficient_attention(q, k, v, bias, True, rate)[0]
