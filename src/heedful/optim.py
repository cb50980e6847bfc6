"""Optimizers: Adam, AdamW, Muon, and SGD on sparse rows."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import OptimizerConfig
from heedful.distributed.shards import copy_into, is_sharded, local, whole
from heedful.nn.named_stacks import stacks


class Muon(torch.optim.AdamW):
    """Muon optimizer (Jordan et al. 2024): orthogonal steps for some parameter groups, AdamW steps for the rest.

    An orthogonal step is the momentum with all its singular values made about equal. Its root mean square is 0.2 lr, as
    in typical Adam steps (Liu et al. 2025, "Muon is Scalable for LLM Training", section 2.2), so that one learning rate
    serves all parameters.
    """

    MOMENTUM = 0.95
    LENGTH = 0.2

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Perform one optimisation step, and clear the gradients of the orthogonal groups, so that AdamW skips them."""
        for group in self.param_groups:
            if group["orthogonal"]:
                # Matrices of the same shape are stacked: their steps are a few large matrix multiplications.
                shapes: dict[torch.Size, list[Tensor]] = {}
                for matrix in group["params"]:
                    if matrix.grad is not None:
                        shapes.setdefault(matrix.shape, []).append(matrix)
                for matrices in shapes.values():
                    self.step_orthogonally(matrices, group)
        super().step(closure)

    def step_orthogonally(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """Perform an orthogonal step on matrices of the same shape; clear their gradients, so that AdamW skips them."""
        # Singular values depend on all rows of a matrix: sharded gradients are gathered from all processes.
        gradients = torch.stack([whole(matrix.grad) for matrix in matrices if matrix.grad is not None])  # N M K
        states = [self.state[matrix] for matrix in matrices]
        for state, matrix in zip(states, matrices, strict=True):
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(matrix)
        momenta = torch.stack([whole(state["momentum"]) for state in states])
        momenta.lerp_(gradients, 1 - self.MOMENTUM)
        # Nesterov's momentum: the direction is one gradient ahead of the running average.
        directions = orthogonal(gradients.lerp(momenta, self.MOMENTUM), group["dtype"])
        # An orthogonal M x K matrix has root mean square 1 / sqrt(max(M, K)).
        lr, length = group["lr"], self.LENGTH * math.sqrt(max(matrices[0].shape))
        for matrix, state, momentum, direction in zip(matrices, states, momenta, directions, strict=True):
            weights = whole(matrix.detach()).mul_(1 - lr * group["weight_decay"]).sub_(direction, alpha=lr * length)
            copy_into(matrix, weights)
            copy_into(state["momentum"], momentum)
            matrix.grad = None


def orthogonal(matrices: Float[Tensor, "N M K"], dtype: torch.dtype) -> Float[Tensor, "N M K"]:
    """Approximately orthogonalise matrices by five Newton-Schulz steps, from U S V^T to U V^T.

    The singular values of the result are between 0.7 and 1.2. Each step is the polynomial a x + b x^3 + c x^5, which
    moves singular values in (0, 1] towards 1 using only matrix multiplications. `dtype` is the type that these use; the
    8 bits of bfloat16 are enough (Jordan et al. 2024).
    """
    # The slope at 0, a = 3.4445, is large, so that small singular values grow fast; they end near 1, not at 1.
    a, b, c = 3.4445, -4.7750, 2.0315
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if is_tall else matrices).to(dtype)  # for a wide matrix, x x^T is the smaller product
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)  # singular values are at most the Frobenius norm
    for _ in range(5):  # a x + b (x x^T) x + c (x x^T)^2 x acts on the singular values alone
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if is_tall else x).to(matrices.dtype)


class RowSGD(torch.optim.Optimizer):
    """Stochastic gradient descent for tables of which few rows have gradients, with a learning rate per prediction.

    word2vec takes a step for each prediction, one after another (Mikolov et al. 2013b). Here all predictions in a batch
    are one step: a row moves along the sum of its gradients, clipped to a norm of `LIMIT`. Otherwise frequent words,
    which get thousands of gradients at the same point, would overshoot.
    """

    LIMIT = 16.0

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, {"lr": lr, "count": 1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Perform one optimisation step; rows without a gradient do not change."""
        del closure
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    # The loss is a mean over `count` predictions: `count` times its gradient is the sum over them.
                    self.step_rows(table, coalesced(table.grad), group["lr"] * group["count"], group["lr"] * self.LIMIT)

    def step_rows(self, table: Tensor, gradient: Tensor, rate: float, max_norm: float) -> None:
        """Move each row of a table against its gradient G, by `rate` |G| but at most by `max_norm`."""
        values = gradient.values() if gradient.is_sparse else gradient
        # (R, D) with R rows; a table of one dimension has rows of one number.
        values = values.flatten(1) if values.dim() > 1 else values[:, None]
        # The factor of a row is `rate`, or `max_norm` / |G| if that is smaller.
        norms = torch.linalg.vector_norm(values, dim=1).clamp_(min=torch.finfo(values.dtype).tiny)
        steps = values * (max_norm / norms).clamp_(max=rate).neg_()[:, None]
        if gradient.is_sparse:
            table.scatter_add_(0, gradient.indices()[0][:, None].expand_as(steps), steps)
        else:
            table.add_(steps.view_as(table))


def coalesced(gradient: Tensor) -> Tensor:
    """Sum the rows of a sparse gradient that belong to the same table row; a dense gradient is returned unchanged.

    On a CPU this is several times as fast as `Tensor.coalesce`: a radix sort orders the rows, and the kernel of
    embedding bags sums them.
    """
    if not gradient.is_sparse or gradient.is_coalesced():
        return gradient
    if gradient.device.type != "cpu":
        return gradient.coalesce()
    rows, values = gradient._indices()[0].numpy(), gradient._values()
    # numpy's stable sort of 16-bit integers is a radix sort. Row numbers are below 2^32: sort by their lower 16 bits,
    # then by their upper 16.
    order = np.argsort((rows & 0xFFFF).astype(np.uint16), kind="stable")
    upper = (rows >> 16).astype(np.uint16)
    if upper.any():
        order = order[np.argsort(upper[order], kind="stable")]
    # Equal rows are now adjacent: each run of them is one bag of `embedding_bag`.
    sequence = rows[order]
    starts = np.flatnonzero(np.diff(sequence, prepend=-1))
    sums = F.embedding_bag(torch.from_numpy(order), values, torch.from_numpy(starts), mode="sum")
    indices = torch.from_numpy(sequence[starts])[None]
    return torch.sparse_coo_tensor(indices, sums, gradient.shape, is_coalesced=True, check_invariants=False)


def clip_gradients(parameters: Iterable[Tensor], limit: float) -> float:
    """Scale the gradients of parameters so that their norm is at most `limit`; return the norm before scaling.

    Sparse gradients are coalesced. With sharded gradients, all processes get the norm of the whole gradient.
    """
    values: list[Tensor] = []
    for parameter in parameters:
        if parameter.grad is not None:
            # Gradients of the same row are summed before the norm is computed, as in a dense gradient.
            parameter.grad = gradient = coalesced(parameter.grad)
            values.append(gradient.values() if gradient.is_sparse else gradient)
    # The norm of a sharded gradient is computed from all rows, in the same order as in one process.
    norm = torch.nn.utils.get_total_norm(
        [torch.linalg.vector_norm(value.full_tensor()) if is_sharded(value) else value for value in values]
    )
    if limit < math.inf:
        scale = (limit / (norm + 1e-6)).clamp(max=1.0)
        for value in values:
            local(value).mul_(scale)
    return norm.item()


OPTIMIZERS: dict[str, Callable[[list[dict[str, Any]], OptimizerConfig, bool], torch.optim.Optimizer]] = {
    "adam": lambda groups, c, fused: torch.optim.Adam(groups, lr=c.lr, betas=c.betas, eps=c.eps, fused=fused),
    "adamw": lambda groups, c, fused: torch.optim.AdamW(groups, lr=c.lr, betas=c.betas, eps=c.eps, fused=fused),
    "muon": lambda groups, c, fused: Muon(groups, lr=c.lr, betas=c.betas, eps=c.eps, fused=fused),
    "row_sgd": lambda groups, c, _: RowSGD(groups, lr=c.lr),
}


def build_optimizer(config: OptimizerConfig, model: nn.Module, dtype: torch.dtype) -> torch.optim.Optimizer:
    """Create the optimizer for all trained parameters, with weight decay for matrices, not for biases and norms.

    Muon's orthogonal steps apply to the linear layers within stacks, not to embeddings or heads. The matrix
    multiplications in these steps use `dtype`; everything else is float32.
    """
    # Within stacks, a matrix maps hidden states to hidden states; an embedding row belongs to a single token.
    linear = [module for stack in stacks(model) for module in stack.modules() if isinstance(module, nn.Linear)]
    inner = {id(module.weight) for module in linear}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # Only matrices decay: there is no reason why the gain of a norm should be near 0.
    matrices, vectors = ([p for p in trained if (p.dim() > 1) is matrix] for matrix in (True, False))
    decay = config.weight_decay
    groups = [
        {"params": [p for p in matrices if id(p) in inner], "weight_decay": decay, "orthogonal": True, "dtype": dtype},
        {"params": [p for p in matrices if id(p) not in inner], "weight_decay": decay, "orthogonal": False},
        {"params": vectors, "weight_decay": 0.0, "orthogonal": False},
    ]
    # torch's device "meta", on which a run is planned without memory, lacks fused kernels.
    fused = not any(parameter.is_meta for parameter in trained)
    return OPTIMIZERS[config.name]([group for group in groups if group["params"]], config, fused)


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's tensors by kind and parameter, such as "exp_avg.output.weight" for Adam."""
    return {
        f"{kind}.{name}": tensor
        for name, parameter in model.named_parameters()
        for kind, tensor in optimizer.state.get(parameter, {}).items()
    }


def check_optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module, values: dict[str, Tensor]) -> None:
    """Check that `values`, in the form of `optimizer_tensors`, are the state of this optimizer after some updates.

    Raises:
        ValueError: names, shapes or types differ from the model's, or the state of a parameter is incomplete; the
            message lists the problems.
    """
    # Names are looked up by state, because the optimizer may step a copy of a parameter that shares its state.
    names = {id(optimizer.state[parameter]): name for name, parameter in model.named_parameters()}
    expected: set[str] = set()
    problems = []
    for group in optimizer.param_groups:
        if isinstance(optimizer, RowSGD):
            kinds = set()
        elif isinstance(optimizer, Muon) and group["orthogonal"]:
            kinds = {"momentum"}
        else:
            kinds = {"exp_avg", "exp_avg_sq", "step"}
        for parameter in group["params"]:
            keys = {f"{kind}.{names[id(optimizer.state[parameter])]}" for kind in kinds}
            present = keys & values.keys()
            expected |= keys
            # A parameter that has not had a gradient yet has no state at all.
            problems += [f"missing {key}" for key in keys - present if present]
            for key in present:
                like = torch.empty((), dtype=parameter.dtype) if key.startswith("step.") else parameter
                if (values[key].dtype, values[key].shape) != (like.dtype, like.shape):
                    problems.append(f"{key} has a different shape or type than the model's")
    problems += [f"unexpected {key}" for key in values.keys() - expected]
    if expected and not values:
        problems.append("it is empty")
    if problems:
        raise ValueError("; ".join(sorted(problems)))


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module, values: dict[str, Tensor]) -> None:
    """Restore the optimizer state from `optimizer_tensors`, with the device and sharding of each parameter."""
    parameters = dict(model.named_parameters())
    stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for key, value in values.items():
        kind, name = key.split(".", 1)
        parameter = parameters[name]
        alike = id(parameter) in stepped and value.shape == parameter.shape
        # The state is sharded like the parameter, except for the number of steps.
        state = torch.empty_like(parameter if alike else value, device=parameter.device, requires_grad=False)
        copy_into(state, value)
        optimizer.state[parameter][kind] = state
