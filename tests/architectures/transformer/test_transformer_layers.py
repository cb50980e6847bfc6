import math

import pytest
import torch

from heedful.architectures.transformer.layers import FEED_FORWARDS, EncoderOutput
from heedful.config.schema import ModelConfig

SCALARS = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
}


def layer(name):
    return FEED_FORWARDS[name](ModelConfig(d_model=6, heads=2, d_ff=11, activation=name)).double().eval()


@pytest.mark.parametrize("name", SCALARS)
def test_a_feed_forward_network_is_formula_2_of_the_paper(name):
    network, x = layer(name), torch.randn(2, 3, 6, dtype=torch.float64)
    with torch.no_grad():
        inner = (x @ network.up.weight.T + network.up.bias).apply_(SCALARS[name])
        torch.testing.assert_close(network(x), inner @ network.down.weight.T + network.down.bias)


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
