"""LoRA: linear layers whose weights are frozen, with a trained low-rank update (Hu et al. 2022, section 4.1).

An updated layer keeps the names of its weights: a checkpoint has all weights of the original model and, for each
updated layer NAME, `NAME.lora_a` and `NAME.lora_b`.

R rank, K inputs, M outputs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config.schema import LoraConfig
from heedful.errors import InputError
from heedful.nn.dropout import Dropout

OUTPUT = "output"  # name of output layers, whose weights a fused loss reads
A, B = ".lora_a", ".lora_b"


class LoraLinear(nn.Linear):
    """Linear layer W x + b with an update, (alpha / R) B A x; it shares W and b with the layer that it replaces."""

    def __init__(self, layer: nn.Linear, config: LoraConfig) -> None:
        nn.Module.__init__(self)  # nn.Linear.__init__ would create new weights
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        like = {"dtype": layer.weight.dtype, "device": layer.weight.device}
        self.lora_a = nn.Parameter(torch.empty(config.rank, self.in_features, **like))
        self.lora_b = nn.Parameter(torch.zeros(self.out_features, config.rank, **like))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))  # B is zero: at first the layer's output does not change
        self.scale = config.alpha / config.rank
        self.dropout = Dropout(config.dropout)

    def forward(self, input: Float[Tensor, "... K"]) -> Float[Tensor, "... M"]:
        # (..., K) -> (..., R) -> (..., M): the product B A, which would be as large as W, is never computed.
        update = F.linear(F.linear(self.dropout(input), self.lora_a), self.lora_b)
        return super().forward(input) + self.scale * update


def merged_weight(layer: nn.Linear) -> Float[Tensor, "M K"]:
    """Return the matrix that a linear layer multiplies by, with its update if it has one; dropout is left out."""
    if not isinstance(layer, LoraLinear):
        return layer.weight
    return layer.weight + layer.scale * layer.lora_b @ layer.lora_a


class Adapter(NamedTuple):
    """Updates of a model that was fine-tuned with LoRA: the settings, and the matrices A and B by layer name."""

    config: LoraConfig
    updates: dict[str, tuple[Float[Tensor, "R K"], Float[Tensor, "M R"]]]

    def merged(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Merge the updates into the weights of the layers; the model's outputs stay the same up to rounding."""
        scale, merged = self.config.alpha / self.config.rank, dict(weights)
        for name, (a, b) in self.updates.items():
            weight = f"{name}.weight"
            precision = torch.promote_types(a.dtype, torch.float32)
            merged[weight] = merged[weight] + (scale * b.to(precision) @ a.to(precision)).to(merged[weight])
        return merged


def split_adapter(weights: Mapping[str, Tensor], config: LoraConfig) -> tuple[dict[str, Tensor], Adapter]:
    """Split the weights of a checkpoint into the model's weights, without updates, and the adapter."""
    layers = [name.removesuffix(A) for name in weights if name.endswith(A)]
    updates = {name: (weights[name + A], weights[name + B]) for name in layers}
    return {name: value for name, value in weights.items() if not name.endswith((A, B))}, Adapter(config, updates)


def add_updates(model: nn.Module, config: LoraConfig) -> None:
    """Replace the linear layers that `config` selects with `LoraLinear` layers, and freeze all weights but the updates.

    Weights whose names begin with an entry of `config.also` are trained as well, directly and without an update.
    """
    # Tied weights have several names, of which a recipe may list any.
    parameters = dict(model.named_parameters(remove_duplicate=False))
    trained = {id(parameters[name]) for name in weights_below("train.lora.also", config.also, parameters)}
    # A fused loss multiplies by the weights of an output layer without calling it, which would skip an update.
    layers = {
        name: layer
        for name, layer in model.named_modules(remove_duplicate=False)
        if type(layer) is nn.Linear and name.rpartition(".")[2] != OUTPUT and id(layer.weight) not in trained
    }
    if not layers:
        raise InputError(
            "train.lora: this model has no linear layers to update; leave train.lora out to train all weights"
        )
    for target in config.targets:
        if not any(is_part(target, name) for name in layers):
            kinds = dict.fromkeys(".".join(part for part in name.split(".") if not part.isdigit()) for name in layers)
            raise InputError(
                f'train.lora.targets: "{target}" is not part of the name of any linear layer to update; the '
                f"names are {', '.join(kinds)}; to train an output layer, list it in train.lora.also"
            )

    for parameter in parameters.values():
        if id(parameter) not in trained:
            parameter.requires_grad_(False)
    updated: dict[int, LoraLinear] = {}  # a layer may have several names
    for name, layer in layers.items():
        if not config.targets or any(is_part(target, name) for target in config.targets):
            if id(layer) not in updated:
                updated[id(layer)] = LoraLinear(layer, config)
            model.set_submodule(name, updated[id(layer)])


def is_part(part: str, name: str) -> bool:
    return f".{part}." in f".{name}."


def weights_below(key: str, beginnings: Sequence[str], parameters: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield the names of all weights at or below the names in `beginnings`, the value of the recipe key `key`."""
    for beginning in beginnings:
        names = [name for name in parameters if f"{name}.".startswith(f"{beginning}.")]
        if not names:
            parts = sorted({".".join(name.split(".")[:2]) for name in parameters})
            raise InputError(
                f'{key}: no weight name begins with "{beginning}"; the names begin with {", ".join(parts)}'
            )
        yield from names
