"""A mixture of experts equals a loop over tokens and experts, and the mixtures of transformers."""

import pytest
import torch

from children import stirred
from heedful.architectures.transformer.layers import FEED_FORWARD_KINDS
from heedful.config.schema import ModelConfig
from heedful.nn.experts import Gate, MixtureOfExperts

CONFIG = ModelConfig(
    d_model=6, heads=2, d_ff=37, activation="swiglu", feed_forward="experts",
    experts=5, experts_per_token=2, shared_experts=2, d_expert=11,
)  # fmt: skip


def mixture(**changes) -> MixtureOfExperts:
    torch.manual_seed(2)
    network = FEED_FORWARD_KINDS["experts"](ModelConfig(**{**vars(CONFIG), **changes}))
    assert isinstance(network, MixtureOfExperts)
    return stirred(network).double()


@torch.no_grad()
@pytest.mark.parametrize("activation", ["swiglu", "relu"])
@pytest.mark.parametrize(("chosen", "shared"), [(1, 0), (2, 0), (2, 1), (5, 2)])
def test_a_mixture_is_a_loop_over_tokens_and_the_experts_they_choose(activation, chosen, shared):
    network = mixture(activation=activation, experts_per_token=chosen, shared_experts=shared)
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    want = torch.zeros_like(x)
    for row, t in torch.cartesian_prod(torch.arange(2), torch.arange(7)).tolist():
        token = x[row : row + 1, t : t + 1]
        scores = (network.router.weight @ x[row, t]).exp()
        best = sorted(range(5), key=lambda i, scores=scores: -float(scores[i]))[:chosen]
        total = sum(scores[i] for i in best)
        want[row, t] += sum(network.experts[i](token)[0, 0] * scores[i] / total for i in best)
        want[row, t] += sum(expert(token)[0, 0] for expert in network.shared)
    torch.testing.assert_close(network(x), want)


def test_the_weights_of_the_chosen_experts_sum_to_one_and_those_of_the_others_are_zero():
    scores = torch.randn(3, 7, 5)
    gates = Gate(2)(scores)
    torch.testing.assert_close(gates.sum(-1), torch.ones(3, 7))
    assert ((gates > 0).sum(-1) == 2).all()
    assert torch.equal(gates.argmax(-1), scores.argmax(-1))


def fused(experts, part) -> torch.Tensor:
    return torch.stack([expert.get_parameter(f"{part}.weight") for expert in experts])


@torch.no_grad()
def test_a_mixture_equals_that_of_mixtral_with_the_same_weights():
    transformers = pytest.importorskip("transformers")
    module = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
    network = mixture(shared_experts=0)
    config = transformers.MixtralConfig(hidden_size=6, intermediate_size=11, num_local_experts=5, num_experts_per_tok=2)
    theirs = module.MixtralSparseMoeBlock(config).double().eval()
    gate_up = torch.cat([fused(network.experts, "gate"), fused(network.experts, "up")], dim=1)
    weights = {"gate.weight": network.router.weight, "experts.gate_up_proj": gate_up}
    theirs.load_state_dict({**weights, "experts.down_proj": fused(network.experts, "down")})
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    torch.testing.assert_close(network(x), theirs(x), atol=1e-6, rtol=1e-6)  # their softmax is in float32


@torch.no_grad()
def test_shared_experts_equal_those_of_deepseek_v2_with_the_same_weights():
    transformers = pytest.importorskip("transformers")
    module = pytest.importorskip("transformers.models.deepseek_v2.modeling_deepseek_v2")
    # DeepSeek-V2 does not divide the weights of the best experts by their sum, which is 1 if all are chosen.
    network = mixture(experts_per_token=5)
    config = transformers.DeepseekV2Config(
        hidden_size=6, num_attention_heads=2, moe_intermediate_size=11, n_routed_experts=5, num_experts_per_tok=5,
        n_shared_experts=2, topk_method="greedy", routed_scaling_factor=1.0, mlp_bias=False,
    )  # fmt: skip
    theirs = module.DeepseekV2Moe(config).double().eval()
    gate_up = torch.cat([fused(network.experts, "gate"), fused(network.experts, "up")], dim=1)
    shared = {name: fused(network.shared, name) for name in ("gate", "up", "down")}
    theirs.load_state_dict({
        "gate.weight": network.router.weight,
        "experts.gate_up_proj": gate_up,
        "experts.down_proj": fused(network.experts, "down"),
        "shared_experts.gate_proj.weight": shared["gate"].flatten(0, 1),
        "shared_experts.up_proj.weight": shared["up"].flatten(0, 1),
        "shared_experts.down_proj.weight": shared["down"].transpose(0, 1).flatten(1),
    })  # fmt: skip
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    torch.testing.assert_close(network(x), theirs(x), atol=1e-6, rtol=1e-6)


def test_an_expert_that_no_token_chooses_has_a_gradient_of_zeros():
    network = mixture().train()
    with torch.no_grad():
        network.router.weight[3] = 0
        network.router.weight[:3] = 0
        network.router.weight[0, 0] = network.router.weight[1, 0] = 1
        network.router.weight[4] = 0
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    x[..., 0] = 1
    network(x).sum().backward()
    gradients = [expert.get_parameter("up.weight").grad for expert in network.experts]
    assert all(gradient is not None for gradient in gradients)
    assert [bool(gradient.any()) for gradient in gradients if gradient is not None] == [True, True, False, False, False]


def test_the_experts_that_a_token_does_not_use_are_inactive():
    assert mixture().inactive_parameters() == 3 * 3 * 6 * 11


def test_experts_are_as_wide_as_a_feed_forward_network_unless_a_width_is_set():
    assert mixture(d_expert=None).experts[0].get_parameter("up.weight").shape == (37, 6)
