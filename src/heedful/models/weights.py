"""Weights of a model by name: reads and replaces them."""

import torch
from torch import Tensor, nn


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Get the parameters of a model by name, each once: a tied matrix has one name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, values: dict[str, Tensor]) -> None:
    """Copy weights, named as by `weights`, into a model.

    Raises:
        ValueError: names or shapes differ; the message lists them.
    """
    own = dict(model.named_parameters())
    problems = [f"missing {name}" for name in own.keys() - values.keys()]
    problems += [f"unexpected {name}" for name in values.keys() - own.keys()]
    problems += [
        f"{name} is {tuple(values[name].shape)}, the model needs {tuple(own[name].shape)}"
        for name in own.keys() & values.keys()
        if own[name].shape != values[name].shape
    ]
    if problems:
        raise ValueError("; ".join(sorted(problems)))
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(values[name])
