"""Speed gained by each mechanism of a training step: python benchmarks/train_mechanisms.py [--help]

The steps of train_step.py are timed as they are, and with one mechanism after another replaced by its plain
alternative. Every measurement is a process of its own, and the variants take turns.
"""

from functools import partial
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from race import Race, Step, System, run
from torch import Tensor
from train_step import SIZES, flops, heedful

from heedful.config.schema import ModelConfig
from heedful.losses import Loss, reference_cross_entropy


def replaced(config: ModelConfig, device: torch.device, place: str, by: Any) -> Step:
    """Make a training step of heedful with the function at `place` replaced, in all of this process."""
    mock.patch(place, by).start()
    return heedful(config, device, "bfloat16")


def all_logits(hidden: Tensor, weight: Tensor, target: Tensor, smoothing: float, bias: Tensor | None) -> Loss:
    return reference_cross_entropy(hidden, weight, target, smoothing, bias)


REPLACEMENTS = {
    "the loss of all logits at once": ("heedful.losses.cross_entropy", all_logits),
    "torch's fused attention": ("heedful.nn.attention.attend", F.scaled_dot_product_attention),
    "torch's softmax in bfloat16": ("heedful.nn.attention.softmax", partial(torch.softmax, dim=-1)),
    "torch's dropout": ("heedful.nn.dropout.dropout", F.dropout),
}
BFLOAT16 = partial(heedful, precision="bfloat16")
SYSTEMS = {
    "heedful": System(BFLOAT16, "bfloat16", keeps_freed=True),
    "float32": System(partial(heedful, precision="float32"), "float32", keeps_freed=True),
    "freed memory given back": System(BFLOAT16, "bfloat16"),
} | {
    name: System(partial(replaced, place=place, by=by), "bfloat16", keeps_freed=True)
    for name, (place, by) in REPLACEMENTS.items()
}

if __name__ == "__main__":
    run(Race(__file__, SYSTEMS, SIZES, flops), __doc__)
