"""Sharded training: each process holds some rows of every weight, gradient and moment (FSDP2, Zhao et al. 2023).

A block's weights are gathered just before it runs, and released afterwards; in the backward pass, its gradients are
summed over all processes, and each process keeps its rows. The sums are the same as in replicated training.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from heedful.architectures.transformer.layers import Decoder
from heedful.distributed.shards import any_sharded, copy_into, is_sharded, whole
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.nn.named_stacks import stacks
from heedful.training.training_step import PRECISIONS, Objective, Precision

M = TypeVar("M", bound=nn.Module)

REGISTER = 16  # float32 numbers in the widest CPU register


class Root(nn.Module):
    """Module that computes the losses of a model, so that FSDP also gathers the weights outside of blocks."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, objective: Objective, batch: Any) -> list[tuple[Any, ...]]:
        # FSDP2 finds the tensors of a result inside tuples, but not inside a `Loss`.
        return [(term.sum, term.nll, term.count) for term in objective(self.model, batch)]


class ShardedWeights(Precision):
    """Precision with sharded float32 weights, which are gathered in the number format of `precision`."""

    def __init__(self, model: nn.Module, mesh: DeviceMesh, precision: str) -> None:
        super().__init__(model)
        self.dtype, self.autocast = PRECISIONS[precision].dtype, PRECISIONS[precision].autocast
        self.root = Root(model)
        shard(self.root, mesh, torch.bfloat16 if precision == "bfloat16" else None)

    def compute(self, objective: Objective, batch: Any) -> Sequence[Loss]:
        with self.context():
            return [Loss(*term) for term in self.root(objective, batch)]


def shard(root: Root, mesh: DeviceMesh, dtype: torch.dtype | None) -> None:
    """Shard a model in place: each block of its stacks separately, and all weights outside of blocks together.

    Args:
        root: The module around the model.
        mesh: The device mesh, with one dimension (FSDP) or two (HSDP).
        dtype: The type in which weights are gathered and gradients computed; None: float32. Gradients are summed in
            float32.
    """
    if scalars := without_rows(root.model):
        raise InputError(
            f"the weights {', '.join(scalars)} are single numbers, which cannot be sharded: set parallel.shard = "
            '"none", or give them a dimension'
        )
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard  # takes seconds to import

    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")  # no view is changed in place
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    # From the inside out, since a module shards only the parameters that no module within it has sharded before.
    for stack in stacks(root):
        for block in stack.blocks:
            if isinstance(stack, Decoder):
                # A decoder calls these projections of the encoder's output outside of its blocks: a separate group.
                attention = block.get_submodule("cross_attention")
                fully_shard([attention.get_submodule("k"), attention.get_submodule("v")], mesh=mesh, mp_policy=policy)
            fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(root, mesh=mesh, mp_policy=policy)

    for module in root.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # the loss is already divided by the count over all processes
            module.set_force_sum_reduction_for_comms(True)  # gloo only sums
        # FSDP2 casts only parameters; the buffers become bfloat16 here, as in the copy of `MasterWeights`.
        if dtype is not None:
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.to(dtype) if buffer.is_floating_point() else buffer)


def without_rows(model: nn.Module) -> list[str]:
    """List the weights of a model that are single numbers and cannot be sharded by rows."""
    return [name for name, parameter in model.named_parameters() if parameter.dim() == 0]


class UnevenShards:
    """Sharded parameters whose rows do not fill whole registers, such as vectors; every process updates them whole.

    At the end of a tensor, numbers that do not fill a register are rounded differently. If each shard had its own end,
    a sharded update would differ in the last bits. Parameters with other shapes, nearly all weights, are updated by
    rows.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        def is_uneven(parameter: Any) -> bool:
            return is_sharded(parameter) and math.prod(parameter.shape[1:]) % REGISTER != 0

        self.copies: list[tuple[Any, nn.Parameter]] = []
        for group in list(optimizer.param_groups):
            uneven = [parameter for parameter in group["params"] if is_uneven(parameter)]
            copies = [nn.Parameter(whole(parameter).detach()) for parameter in uneven]
            for parameter, copy in zip(uneven, copies, strict=True):
                # Shared: checkpoints save and restore the state under the model's parameter.
                optimizer.state[copy] = optimizer.state[parameter]
            group["params"] = [parameter for parameter in group["params"] if not is_uneven(parameter)]
            if copies:  # a separate group, since a fused step takes either sharded or whole parameters
                optimizer.add_param_group({**group, "params": copies})
            self.copies += zip(uneven, copies, strict=True)

    @contextmanager
    @torch.no_grad()
    def gathered(self) -> Iterator[None]:
        """Gather parameters and gradients for the optimizer step in the block, then copy the new parameters back."""
        for parameter, copy in self.copies:
            copy.copy_(whole(parameter))
            copy.grad = None if parameter.grad is None else whole(parameter.grad)
        yield
        for parameter, copy in self.copies:
            copy_into(parameter, copy)
            copy.grad = None


@torch.no_grad()
def whole_model(model: M, build: Callable[[], M]) -> M:
    """Return a model with all weights: the model itself or, if it is sharded, a new one from `build` with its weights.

    All processes that share the weights must call this function.
    """
    if not any_sharded(model.parameters()):
        return model
    copy = build()
    for parameter, own in zip(copy.parameters(), model.parameters(), strict=True):
        parameter.copy_(whole(own))
    return copy
