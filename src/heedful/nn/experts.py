"""Mixture of experts: a feed-forward sublayer of many networks, of which each token uses a few (Shazeer et al. 2017).

As in Mixtral (Jiang et al. 2024), a token always reaches the experts that its router chooses: experts have no capacity
limit, which other tokens could exhaust. So the output for a token depends on this token alone, whatever its batch and
padding. As in DeepSeekMoE (Dai et al. 2024), there may also be shared experts, which process every token.

The choice is not continuous: where two experts have the same score up to rounding, rounding decides.

B batch, T tokens, D model, E experts, C experts chosen by a token, N = B x T x C rows.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig


class Gate(nn.Module):
    """Choice of experts: the softmax of the `count` best scores of a token, and 0 for all other experts."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, scores: Float[Tensor, "B T E"]) -> Float[Tensor, "B T E"]:
        best = scores.topk(self.count, dim=-1)
        weights = best.values.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
        return torch.zeros_like(scores).scatter(-1, best.indices, weights.to(scores.dtype))


class MixtureOfExperts(nn.Module):
    """Mixture of experts: the sum of the networks that a token chooses, weighted by its gate, and of shared networks.

    Args:
        config: The model configuration.
        build: Creates one expert; `d_ff` of its argument is the size of an expert's hidden layer.

    Attributes:
        rows_per_expert: Counts how often each expert is chosen; a plan, whose tensors have no values, replaces it.
    """

    parameter_kind = "feed-forward"

    def __init__(self, config: ModelConfig, build: Callable[[ModelConfig], nn.Module]) -> None:
        super().__init__()
        expert = replace(config, d_ff=config.d_expert or config.d_ff)
        self.router = nn.Linear(config.d_model, config.experts, bias=False)
        self.gate = Gate(config.experts_per_token)
        self.experts = nn.ModuleList(build(expert) for _ in range(config.experts))
        self.shared = nn.ModuleList(build(expert) for _ in range(config.shared_experts))
        self.rows_per_expert: Callable[[Tensor, int], list[int]] = rows_per_expert

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        weights, choice = self.gate(self.router(x)).topk(self.gate.count, dim=-1)  # B T C
        y = (weights[..., None] * self.routed(x, choice)).sum(2)
        for network in self.shared:
            y = y + network(x)
        return y

    def routed(self, x: Float[Tensor, "B T D"], choice: Int[Tensor, "B T C"]) -> Float[Tensor, "B T C D"]:
        """Compute each token with each expert that it chooses; an expert computes all of its tokens at once."""
        # One row per token and choice. Sorted by expert, the rows of an expert are adjacent.
        order = choice.flatten().argsort(stable=True)  # N
        # Copies before sorting: in the backward pass, a sorted row adds to one row only, in an order that never varies.
        rows = x[:, :, None].expand(-1, -1, choice.size(2), -1).flatten(0, 2)[order]
        parts = rows.split(self.rows_per_expert(choice, len(self.experts)))
        # An expert without rows computes nothing; in training it gets a gradient of zeros, as on any other process.
        outputs = [
            expert(part[None])[0] if len(part) or torch.is_grad_enabled() else part
            for expert, part in zip(self.experts, parts, strict=True)
        ]
        # Back to the order of the tokens.
        return torch.cat(outputs)[order.argsort()].unflatten(0, choice.shape)

    def inactive_parameters(self) -> int:
        """Count the parameters of the experts that a token does not use."""
        parameters = sum(parameter.numel() for parameter in self.experts.parameters())
        return parameters * (len(self.experts) - self.gate.count) // len(self.experts)


def rows_per_expert(choice: Int[Tensor, "B T C"], experts: int) -> list[int]:
    return choice.flatten().bincount(minlength=experts).tolist()
