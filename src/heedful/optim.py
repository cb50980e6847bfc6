"""Optimisers (Adam, AdamW, Muon, SGD by rows) and learning-rate schedules, functions of the number of updates."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import OptimizerConfig
from heedful.distributed import Sharded, copy_into, local, whole
from heedful.nn.named_stacks import stacks


@dataclass(frozen=True)
class Clock:
    """Input of a learning-rate schedule: the current update, and facts about the run."""

    step: int  # number of the update, from 1
    warmup: int
    total: int | float
    d_model: int
    floor: float  # smallest factor of the learning rate


def vaswani(clock: Clock) -> float:
    """Schedule d_model^-0.5 min(step^-0.5, step warmup^-1.5): formula 3 of Vaswani et al. (2017)."""
    return clock.d_model**-0.5 * min(clock.step**-0.5, clock.step * clock.warmup**-1.5)


def inverse_sqrt(clock: Clock) -> float:
    """Schedule with linear warm-up to 1, then decay by sqrt(warmup / step)."""
    return min(warm(clock), math.sqrt(max(clock.warmup, 1) / clock.step))


def cosine(clock: Clock) -> float:
    """Schedule with linear warm-up to 1, then cosine decay to the floor (Loshchilov & Hutter 2017)."""
    return warm(clock) * (clock.floor + (1 - clock.floor) * 0.5 * (1 + math.cos(math.pi * done(clock))))


def linear(clock: Clock) -> float:
    """Schedule with linear warm-up to 1, then linear decay to the floor."""
    return warm(clock) * (clock.floor + (1 - clock.floor) * (1 - done(clock)))


def constant(clock: Clock) -> float:
    """Schedule with linear warm-up to 1, then constant."""
    return warm(clock)


def warm(clock: Clock) -> float:
    """Progress of the warm-up as a factor, from 1 / warmup to 1."""
    return min(1.0, clock.step / max(clock.warmup, 1))


def done(clock: Clock) -> float:
    """Progress of the run after the warm-up, from 0 to 1."""
    return min(1.0, max(0, clock.step - clock.warmup) / max(1, clock.total - clock.warmup))


SCHEDULES: dict[str, Callable[[Clock], float]] = {
    "vaswani": vaswani,
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}


def learning_rate(config: OptimizerConfig, step: int, total: int | float, d_model: int) -> float:
    """Compute the learning rate of update `step`, counted from 1, in a run of `total` updates, perhaps estimated."""
    clock = Clock(step, config.warmup, total, d_model, config.min_lr / config.lr)
    return config.lr * SCHEDULES[config.schedule](clock)


class Muon(torch.optim.AdamW):
    """Muon optimiser (Jordan et al. 2024): orthogonal steps for some parameter groups, AdamW steps for the rest.

    An orthogonal step goes along the momentum with all its singular values made about equal. Its length is that of
    usual Adam steps, root mean square 0.2 lr (Liu et al. 2025, "Muon is Scalable for LLM Training", section 2.2), so
    that one learning rate serves all parameters.
    """

    MOMENTUM = 0.95
    LENGTH = 0.2

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Perform one optimisation step; the gradients of the orthogonal groups are removed."""
        for group in self.param_groups:
            if group["orthogonal"]:
                for matrices in of_one_shape(group["params"]):
                    self.step_orthogonally(matrices, group)
        super().step(closure)

    def step_orthogonally(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """Perform an orthogonal step on matrices of one shape, and remove their gradients, so that AdamW skips them."""
        gradients = torch.stack([whole(matrix.grad) for matrix in matrices if matrix.grad is not None])
        states = [self.state[matrix] for matrix in matrices]
        for state, matrix in zip(states, matrices, strict=True):
            state.setdefault("momentum", torch.zeros_like(matrix))
        momenta = torch.stack([whole(state["momentum"]) for state in states])
        momenta.lerp_(gradients, 1 - self.MOMENTUM)
        directions = orthogonal(gradients.lerp(momenta, self.MOMENTUM), group["dtype"])
        lr, length = group["lr"], self.LENGTH * math.sqrt(max(matrices[0].shape))
        for matrix, state, momentum, direction in zip(matrices, states, momenta, directions, strict=True):
            moved = whole(matrix.detach()).mul_(1 - lr * group["weight_decay"]).sub_(direction, alpha=lr * length)
            copy_into(matrix, moved)
            copy_into(state["momentum"], momentum)
            matrix.grad = None


def of_one_shape(matrices: list[Tensor]) -> list[list[Tensor]]:
    """Group the matrices that have a gradient by their shape."""
    shapes: dict[torch.Size, list[Tensor]] = {}
    for matrix in matrices:
        if matrix.grad is not None:
            shapes.setdefault(matrix.shape, []).append(matrix)
    return list(shapes.values())


def orthogonal(matrices: Float[Tensor, "N M K"], dtype: torch.dtype) -> Float[Tensor, "N M K"]:
    """Orthogonalise matrices by five Newton-Schulz steps: U V^T of each U S V^T, roughly.

    The singular values come out between 0.7 and 1.2 instead of 1. Each step is the polynomial a x + b x^3 + c x^5,
    which brings singular values in (0, 1] towards 1 by matrix products alone, for which the 8 bits of bfloat16 are
    enough (Jordan et al. 2024).

    Args:
        matrices: N matrices of one shape.
        dtype: the type of the products; the result has the type of `matrices`.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).to(dtype)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


class RowSGD(torch.optim.Optimizer):
    """Stochastic gradient descent for tables of which few rows have gradients; lr is the rate of a single prediction.

    word2vec makes a step of lr for each prediction, one after another (Mikolov et al. 2013b). Here all predictions of a
    batch make theirs at once: a row goes along the sum of their gradients. The sum of a row is clipped to a norm of
    `LIMIT`, or frequent words, which get thousands of gradients from one place, would overshoot.
    """

    LIMIT = 16.0

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, {"lr": lr, "count": 1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Perform one optimisation step; rows without a gradient stay as they are."""
        del closure
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    self.step_rows(table, coalesced(table.grad), group["lr"] * group["count"], group["lr"] * self.LIMIT)

    def step_rows(self, table: Tensor, gradient: Tensor, rate: float, longest: float) -> None:
        """Move the rows of a table by `rate` times the gradient, each by no more than `longest`."""
        values = gradient.values() if gradient.is_sparse else gradient
        values = values.flatten(1) if values.dim() > 1 else values[:, None]
        lengths = torch.linalg.vector_norm(values, dim=1).clamp_(min=torch.finfo(values.dtype).tiny)
        steps = values * (longest / lengths).clamp_(max=rate).neg_()[:, None]
        if gradient.is_sparse:
            table.scatter_add_(0, gradient.indices()[0][:, None].expand_as(steps), steps)
        else:
            table.add_(steps.view_as(table))


def coalesced(gradient: Tensor) -> Tensor:
    """Sum the rows of a sparse gradient that belong to one row of a table; a dense gradient comes back unchanged.

    On a CPU this is several times as fast as `Tensor.coalesce`: a radix sort puts the rows in order, and the kernel of
    embedding bags sums them.
    """
    if not gradient.is_sparse or gradient.is_coalesced():
        return gradient
    if gradient.device.type != "cpu":
        return gradient.coalesce()
    rows, values = gradient._indices()[0].numpy(), gradient._values()
    order = radix_order(rows)
    ordered = rows[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sums = F.embedding_bag(torch.from_numpy(order), values, torch.from_numpy(starts), mode="sum")
    found = torch.from_numpy(ordered[starts])[None]
    return torch.sparse_coo_tensor(found, sums, gradient.shape, is_coalesced=True, check_invariants=False)


def radix_order(numbers: np.ndarray) -> np.ndarray:
    """Find the order that sorts row numbers below 2^32: by their lower, then their upper 16 bits (a radix sort)."""
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    upper = (numbers >> 16).astype(np.uint16)
    return order[np.argsort(upper[order], kind="stable")] if upper.any() else order


def clip_gradients(parameters: Iterable[Tensor], limit: float) -> float:
    """Scale the gradients of parameters so that their norm is at most `limit`; return the norm that they had.

    Sparse gradients are coalesced. Of sharded gradients all processes get the norm of the whole.
    """
    parameters = [parameter for parameter in parameters if parameter.grad is not None]
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad = coalesced(parameter.grad)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    values = [gradient.values() if gradient.is_sparse else gradient for gradient in gradients]
    norm = torch.nn.utils.get_total_norm([measurable(gradient) for gradient in values])
    if limit < math.inf:
        scale = (limit / (norm + 1e-6)).clamp(max=1.0)
        for gradient in values:
            local(gradient).mul_(scale)
    return norm.item()


def measurable(gradient: Tensor) -> Tensor:
    """Return a tensor of the same norm: of a sharded gradient its norm, computed from all rows as without sharding."""
    return torch.linalg.vector_norm(whole(gradient)) if isinstance(gradient, Sharded) else gradient


def is_real(groups: list[dict[str, Any]]) -> bool:
    """True unless the parameters are on torch's device "meta": without memory, for which there are no fused kernels."""
    return not any(parameter.is_meta for group in groups for parameter in group["params"])


OPTIMIZERS: dict[str, Callable[[list[dict[str, Any]], OptimizerConfig], torch.optim.Optimizer]] = {
    "adam": lambda groups, c: torch.optim.Adam(groups, lr=c.lr, betas=c.betas, eps=c.eps, fused=is_real(groups)),
    "adamw": lambda groups, c: torch.optim.AdamW(groups, lr=c.lr, betas=c.betas, eps=c.eps, fused=is_real(groups)),
    "muon": lambda groups, c: Muon(groups, lr=c.lr, betas=c.betas, eps=c.eps, fused=is_real(groups)),
    "row_sgd": lambda groups, c: RowSGD(groups, lr=c.lr),
}


def build_optimizer(config: OptimizerConfig, model: nn.Module, dtype: torch.dtype) -> torch.optim.Optimizer:
    """Create the optimiser of all trained parameters. Weight decay is for matrices, not for biases and norms.

    Muon's orthogonal steps are for the linear layers within stacks, not for embeddings or heads. The matrix products of
    these steps are computed in `dtype`; everything else is float32.
    """
    linear = [module for stack in stacks(model) for module in stack.modules() if isinstance(module, nn.Linear)]
    inner = {id(module.weight) for module in linear}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices, vectors = ([p for p in trained if (p.dim() > 1) is matrix] for matrix in (True, False))
    decay = config.weight_decay
    groups = [
        {"params": [p for p in matrices if id(p) in inner], "weight_decay": decay, "orthogonal": True, "dtype": dtype},
        {"params": [p for p in matrices if id(p) not in inner], "weight_decay": decay, "orthogonal": False},
        {"params": vectors, "weight_decay": 0.0, "orthogonal": False},
    ]
    filled = [group for group in groups if group["params"]]
    return OPTIMIZERS[config.name](filled, config)


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Get the optimiser's state as `KIND.NAME` for each parameter NAME: of Adam exp_avg, exp_avg_sq and step."""
    return {
        f"{kind}.{name}": tensor
        for name, parameter in model.named_parameters()
        for kind, tensor in optimizer.state.get(parameter, {}).items()
    }


def check_optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module, values: dict[str, Tensor]) -> None:
    """Check that `optimizer_tensors` of an optimiser that has made updates can have given these tensors.

    Raises:
        ValueError: names, shapes or types differ from the model's, or a parameter has a part of its state only; the
            message lists them.
    """
    # by their states, since a parameter may be stepped as a copy that shares its state
    names = {id(optimizer.state[parameter]): name for name, parameter in model.named_parameters()}
    expected: dict[str, set[str]] = {}
    problems = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name, kinds = names[id(optimizer.state[parameter])], _kinds(optimizer, group)
            expected[name] = {f"{kind}.{name}" for kind in kinds}
            found = expected[name] & values.keys()
            problems += [f"missing {key}" for key in expected[name] - found if found]
            for key in found:
                like = torch.empty((), dtype=parameter.dtype) if key.startswith("step.") else parameter
                problems += [] if _alike(values[key], like) else [f"{key} is of another shape or type than the model's"]
    wanted = set().union(*expected.values())
    problems += [f"unexpected {key}" for key in values.keys() - wanted]
    if wanted and not values:
        problems.append("it is empty")
    if problems:
        raise ValueError("; ".join(sorted(problems)))


def _alike(one: Tensor, other: Tensor) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape)


def _kinds(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> set[str]:
    """The kinds of tensors that an optimiser keeps for each parameter of a group."""
    if isinstance(optimizer, RowSGD):
        return set()
    if isinstance(optimizer, Muon) and group["orthogonal"]:
        return {"momentum"}
    return {"exp_avg", "exp_avg_sq", "step"}


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module, values: dict[str, Tensor]) -> None:
    """Restore the optimiser's state that `optimizer_tensors` gave, on each parameter's device, and sharded as it is."""
    parameters = dict(model.named_parameters())
    stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for key, value in values.items():
        kind, name = key.split(".", 1)
        parameter = parameters[name]
        alike = id(parameter) in stepped and value.shape == parameter.shape
        own = torch.empty_like(parameter if alike else value, device=parameter.device, requires_grad=False)
        copy_into(own, value)
        optimizer.state[parameter][kind] = own
