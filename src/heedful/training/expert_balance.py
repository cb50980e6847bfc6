"""Balance of experts: a loss without which a mixture of experts may come to use only a few of them.

It is the expert-level balance loss of DeepSeek-V2 (section 2.2.3), computed for each sequence separately. Therefore it
is a sum, like every loss in heedful, and does not depend on how sequences are split into batches and processes. The
loss of a whole batch (Fedus et al. 2022) does. The alternative without a loss (DeepSeek-V3), biases that are corrected
after each update, would be state in addition to weights and optimizer, which processes and checkpoints would have to
share.

B batch, T tokens, E experts.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.losses import Loss
from heedful.nn.experts import Gate
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import stacks
from heedful.training.training_step import Objective


class Scores(NamedTuple):
    """Scores that the router of one layer gives to the experts, for tokens of which some are padding."""

    scores: Float[Tensor, "B T E"]
    padding_mask: Bool[Tensor, "B T"]
    chosen: int  # experts per token


def balanced(objective: Objective, weight: float) -> Objective:
    """Add the balance loss of all layers, times `weight`, as the last term of an objective; its count is of tokens."""

    def compute(model: nn.Module, batch: Any) -> Sequence[Loss]:
        with router_scores(model) as layers:
            terms = objective(model, batch)
        # Computed here, not in the blocks, which activation checkpointing would run twice.
        total = weight * torch.stack([balance(*layer) for layer in layers]).sum()
        return *terms, Loss(total, total.detach(), batch.tokens)

    return compute


@contextmanager
def router_scores(model: nn.Module) -> Iterator[list[Scores]]:
    """Collect the scores of all routers in the forward passes inside the block."""
    layers: list[Scores] = []
    padding_mask = torch.empty(0)

    def enter_stack(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        nonlocal padding_mask
        mask = arguments[1]
        padding_mask = mask.padding_mask if isinstance(mask, AttentionMask) else mask

    def enter_gate(gate: Any, arguments: tuple[Any, ...]) -> None:
        layers.append(Scores(arguments[0], padding_mask, gate.count))

    with ExitStack() as undo:
        for stack in stacks(model):
            undo.callback(stack.register_forward_pre_hook(enter_stack).remove)
            for gate in stack.modules():
                if isinstance(gate, Gate):
                    undo.callback(gate.register_forward_pre_hook(enter_gate).remove)
        yield layers


def balance(scores: Float[Tensor, "B T E"], padding_mask: Bool[Tensor, "B T"], chosen: int) -> Float[Tensor, ""]:
    """Compute the balance loss of a layer: the sum over sequences of T f P, summed over the experts.

    T is the number of real tokens, P the mean probability of an expert, and f the share of the tokens that choose it,
    times E / `chosen`, which is 1 if all experts are equally busy. Only P has a gradient.
    """
    probabilities = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    real = padding_mask[..., None].to(probabilities.dtype)
    choices = torch.zeros_like(probabilities).scatter(-1, scores.topk(chosen, dim=-1).indices, 1.0)
    tokens = real.sum((1, 2)).clamp(min=1)  # B
    f = (choices * real).sum(1) / tokens[:, None] * (scores.size(-1) / chosen)  # B E
    return (f * (probabilities * real).sum(1)).sum()
