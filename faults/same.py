"""Bit for bit."""

from collections.abc import Mapping

import torch

from heedful.checkpoint import Checkpoint


def same_tensors(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )


def same(one: Checkpoint | None, other: Checkpoint) -> bool:
    return (
        one is not None
        and (one.step, one.recipe, one.state) == (other.step, other.recipe, other.state)
        and same_tensors(one.weights, other.weights)
        and same_tensors(one.optimizer, other.optimizer)
        and one.tokenizers.joint == other.tokenizers.joint
        and one.tokenizers.source.encode("eine") == other.tokenizers.source.encode("eine")
    )
