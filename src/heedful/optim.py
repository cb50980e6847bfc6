"""Optimisers and learning-rate schedules. A schedule is a function of the clock, so that resuming is arithmetic."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.config.schema import OptimizerConfig


@dataclass(frozen=True)
class Clock:
    """When it is, and what a schedule needs to know of the run."""

    step: int  # from 1
    warmup: int
    total: int
    d_model: int
    floor: float  # smallest factor


def vaswani(clock: Clock) -> float:
    """d_model^-0.5 min(step^-0.5, step warmup^-1.5): formula 3 of Vaswani et al. (2017)."""
    return clock.d_model**-0.5 * min(clock.step**-0.5, clock.step * clock.warmup**-1.5)


def inverse_sqrt(clock: Clock) -> float:
    """Linear warm-up to 1, then sqrt(warmup / step)."""
    return min(warm(clock), math.sqrt(max(clock.warmup, 1) / clock.step))


def cosine(clock: Clock) -> float:
    """Linear warm-up to 1, then half a cosine down to the floor (Loshchilov & Hutter 2017)."""
    return warm(clock) * (clock.floor + (1 - clock.floor) * 0.5 * (1 + math.cos(math.pi * done(clock))))


def linear(clock: Clock) -> float:
    """Linear warm-up to 1, then a line down to the floor."""
    return warm(clock) * (clock.floor + (1 - clock.floor) * (1 - done(clock)))


def constant(clock: Clock) -> float:
    """Linear warm-up to 1, then 1."""
    return warm(clock)


def warm(clock: Clock) -> float:
    """How far the warm-up is: from 1 / warmup to 1."""
    return min(1.0, clock.step / max(clock.warmup, 1))


def done(clock: Clock) -> float:
    """How much of the time after the warm-up is over: from 0 to 1."""
    return min(1.0, max(0, clock.step - clock.warmup) / max(1, clock.total - clock.warmup))


SCHEDULES: dict[str, Callable[[Clock], float]] = {
    "vaswani": vaswani,
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}


def learning_rate(config: OptimizerConfig, step: int, total: int, d_model: int) -> float:
    """The learning rate of update `step`, counted from 1, in a run of `total` updates."""
    clock = Clock(step, config.warmup, total, d_model, config.min_lr / config.lr)
    return config.lr * SCHEDULES[config.schedule](clock)


OPTIMIZERS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def build_optimizer(config: OptimizerConfig, model: nn.Module) -> torch.optim.Adam:
    """The optimiser over all parameters that are trained. Matrices decay; biases and the weights of norms do not."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = {"params": [p for p in trained if p.dim() > 1], "weight_decay": config.weight_decay}
    vectors = {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0}
    groups = [group for group in (matrices, vectors) if group["params"]]
    return OPTIMIZERS[config.name](groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def optimizer_tensors(optimizer: torch.optim.Adam, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's state as `exp_avg.NAME`, `exp_avg_sq.NAME` and `step.NAME` for each parameter NAME."""
    return {
        f"{kind}.{name}": tensor
        for name, parameter in model.named_parameters()
        for kind, tensor in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(optimizer: torch.optim.Adam, model: nn.Module, values: dict[str, Tensor]) -> None:
    """Restore what `optimizer_tensors` gave, moments and step counts, on each parameter's device."""
    parameters = dict(model.named_parameters())
    for key, value in values.items():
        kind, name = key.split(".", 1)
        optimizer.state[parameters[name]][kind] = value.to(parameters[name].device)
