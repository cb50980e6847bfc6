import math
from typing import Any

import pytest
import torch

from heedful.architectures.transformer.layers import FEED_FORWARDS, RESIDUALS, Block, EncoderOutput, Stack, layer_norm
from heedful.config.load import load_preset
from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention
from heedful.nn.masks import AttentionMask
from heedful.registry import POSITIONS

SCALARS = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "identity": lambda x: x,
}


def layer(name):
    return FEED_FORWARDS[name](ModelConfig(d_model=6, heads=2, d_ff=11, activation=name)).double().eval()


@pytest.mark.parametrize("name", SCALARS)
def test_a_feed_forward_network_is_formula_2_of_the_paper(name):
    network, x = layer(name), torch.randn(2, 3, 6, dtype=torch.float64)
    with torch.no_grad():
        inner = (x @ network.up.weight.T + network.up.bias).apply_(SCALARS[name])
        torch.testing.assert_close(network(x), inner @ network.down.weight.T + network.down.bias)


def test_the_feed_forward_network_of_base_widens_512_features_to_2048_and_narrows_them_again():
    network = FEED_FORWARDS["relu"](load_preset("vaswani-base").model)
    assert network(torch.randn(1, 3, 512)).shape == (1, 3, 512)
    assert (network.up.weight.shape, network.down.weight.shape) == ((2048, 512), (512, 2048))


def test_swiglu_gates_each_value_by_the_sigmoid_linear_unit_of_another():
    network, x = layer("swiglu"), torch.randn(2, 3, 6, dtype=torch.float64)
    with torch.no_grad():
        gate, value = x @ network.get_parameter("gate.weight").T, x @ network.get_parameter("up.weight").T
        want = (gate / (1 + (-gate).exp()) * value) @ network.get_parameter("down.weight").T
        torch.testing.assert_close(network(x), want)
    assert not [name for name, _ in network.named_parameters() if name.endswith("bias")]


def test_the_bias_is_zero_where_one_may_look_and_hides_the_rest():
    real = torch.tensor([[True, True, True, False, False], [False, True, True, True, True]])
    bias = EncoderOutput(torch.zeros(2, 5, 3), real).attention_bias
    assert bias.shape == (2, 1, 1, 5)
    assert ((bias == 0)[:, 0, 0] == real).all()
    assert (bias.softmax(-1)[:, 0, 0][~real] == 0).all()


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", RESIDUALS)
def test_a_sublayer_is_added_to_its_input_and_normalised_as_the_recipe_says(norm, residual):
    config = ModelConfig(d_model=6, heads=2, norm=norm, residual=residual)
    connection, x, weight = RESIDUALS[norm](config).eval(), torch.randn(2, 3, 6), torch.randn(6, 6)

    def normalised(y):
        return (y - y.mean(-1, keepdim=True)) / (y.var(-1, correction=0, keepdim=True) + config.norm_eps).sqrt()

    with torch.no_grad():
        y = (normalised(x) if norm == "pre" else x) @ weight + (x if residual else 0)
        torch.testing.assert_close(connection(x, lambda h: h @ weight), normalised(y) if norm == "post" else y)


def test_a_residual_connection_adds_3_2_and_1_8_to_5_and_refuses_another_shape():
    connection, x = RESIDUALS["none"](ModelConfig(norm="none")).eval(), torch.full((2, 5, 64), 3.2)
    torch.testing.assert_close(connection(x, lambda h: torch.full_like(h, 1.8)), torch.full((2, 5, 64), 5.0))
    with pytest.raises(RuntimeError, match="must match the size"):
        connection(x, lambda h: h[..., :32])


@pytest.mark.parametrize("norm", RESIDUALS)
def test_a_block_keeps_the_shape_of_2_texts_of_5_tokens_with_64_features(norm):
    config = ModelConfig(d_model=64, heads=8, norm=norm)
    x, mask = torch.randn(2, 5, 64), AttentionMask(torch.ones(2, 5, dtype=torch.bool), 5, causal=False)
    assert Block(config)(x, mask.inputs(POSITIONS["none"](config, causal=False), x)).shape == (2, 5, 64)


def test_a_layer_norm_takes_away_a_mean_of_2_and_a_variance_of_5():
    norm, x = layer_norm(ModelConfig(d_model=64, heads=8)), torch.randn(2, 5, 64)
    x = (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
    torch.testing.assert_close(norm(2 + math.sqrt(5) * x), x)
    assert norm.eps == 1e-5


@pytest.mark.parametrize("norm", RESIDUALS)
def test_only_a_stack_of_pre_norm_blocks_ends_with_a_norm(norm):
    config = ModelConfig(d_model=6, heads=2, d_ff=11, norm=norm)
    stack = Stack(config, 2, POSITIONS["none"](config, causal=False))
    assert isinstance(stack.norm, torch.nn.LayerNorm) == (norm == "pre")
    names = [name for name, _ in stack.named_parameters() if "norm" in name]
    assert len(names) == {"post": 8, "pre": 10, "none": 0}[norm]


def test_unscaled_scores_are_the_scaled_ones_times_the_root_of_the_key_size():
    scaled, unscaled = (Attention(ModelConfig(d_model=24, heads=2, scale_scores=scale)) for scale in (True, False))
    unscaled.load_state_dict(scaled.state_dict())
    x = torch.randn(2, 3, 24)
    torch.testing.assert_close(unscaled.queries(x), scaled.queries(x) * math.sqrt(12))


def test_a_block_of_unscaled_scores_without_norms_and_activation_is_its_formula():
    config = ModelConfig(d_model=6, heads=1, d_ff=11, norm="none", scale_scores=False, activation="identity")
    block, x = Block(config).eval(), torch.randn(1, 4, 6)
    feed_forward: Any = block.feed_forward
    with torch.no_grad():
        q, k, v = (getattr(block.self_attention, name)(x) for name in "qkv")
        y = x + block.self_attention.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)
        expected = y + feed_forward.down(feed_forward.up(y))
        mask = AttentionMask(torch.ones(1, 4, dtype=torch.bool), 4, causal=False)
        inputs = mask.inputs(POSITIONS["none"](config, causal=False), x)
        torch.testing.assert_close(block(x, inputs), expected)
