import pytest
import torch
from torch import nn

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.errors import InputError
from heedful.nn import int8
from heedful.nn.int8 import Int8Linear, in_int8, rounded


@pytest.fixture
def trained() -> nn.Linear:
    torch.manual_seed(7)
    return nn.Linear(37, 23)


def in_loops(linear: Int8Linear, row: list[float]) -> list[float]:
    """The same map, one multiplication at a time, on Python's integers and floats of float32."""
    step = max(max(abs(x) for x in row) / 127, 1e-12)
    whole = [round(x / step) for x in row]
    sums = [sum(x * w for x, w in zip(whole, weights, strict=True)) for weights in linear.steps.tolist()]
    biases = linear.bias.tolist() if linear.bias is not None else [0.0] * len(sums)
    return [total * step * scale + bias for total, scale, bias in zip(sums, linear.scale.tolist(), biases, strict=True)]


@pytest.mark.parametrize("bias", [True, False])
def test_a_map_in_integers_is_its_definition_in_loops(bias):
    torch.manual_seed(1)
    linear = Int8Linear(nn.Linear(37, 23, bias=bias))
    x = torch.randn(11, 37)
    want = torch.tensor([in_loops(linear, row) for row in x.tolist()])
    torch.testing.assert_close(linear(x), want, rtol=1e-5, atol=1e-6)


def test_rounding_costs_at_most_half_a_step_of_each_factor(trained):
    x = torch.randn(53, 37)
    rows, step = rounded(x)
    weights, size = rounded(trained.weight.detach())
    assert rows.abs().max() == 127
    assert weights.abs().amax(1).eq(127).all()
    assert ((rows * step - x).abs() <= step / 2 + 1e-6).all()
    bound = (step / 2 * trained.weight.abs().sum(1)) + (x.abs().sum(1, keepdim=True) + 37 * step / 2) * size.T / 2
    error = (Int8Linear(trained)(x) - trained(x)).abs()
    assert (error <= bound + 1e-5).all()
    assert error.max() > 1e-4


def test_each_output_has_a_step_of_its_own(trained):
    sizes = 1000.0 ** torch.linspace(-1, 1, 23)[:, None]
    with torch.no_grad():
        trained.weight *= sizes
    linear = Int8Linear(trained)
    assert linear.steps.abs().amax(1).eq(127).all()
    error = (linear.weight - trained.weight).abs().amax(1)
    assert (error <= trained.weight.abs().amax(1) / 253).all()
    x = torch.randn(11, 37)
    exact = trained(x) - trained.bias
    assert ((linear(x) - trained(x)).norm(dim=0) < 0.02 * exact.norm(dim=0)).all()


def test_a_row_is_the_same_alone_and_beside_much_larger_ones(trained):
    linear = Int8Linear(trained)
    x = torch.randn(19, 37) * torch.logspace(-5, 5, 19)[:, None]
    alone = torch.cat([linear(row[None]) for row in x])
    assert torch.equal(alone, linear(x))
    assert torch.equal(alone, linear(x.reshape(1, 19, 37))[0])


def test_rows_of_zeros_give_the_bias_and_numbers_that_are_none_stay_none(trained):
    linear = Int8Linear(trained)
    x = torch.zeros(3, 37)
    x[1, 5] = torch.nan
    found = linear(x)
    assert torch.equal(found[0], trained.bias)
    assert found[1].isnan().all()
    assert torch.equal(found[2], trained.bias)


def test_a_model_in_integers_shares_the_rest_with_the_trained_one_and_leaves_it_alone():
    torch.manual_seed(2)
    model = EncoderDecoder(ModelConfig(d_model=26, d_ff=37, heads=2, encoder_layers=1, decoder_layers=1), 29, 29).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    integers = in_int8(model)
    assert not any(isinstance(module, nn.Linear) for module in integers.modules())
    assert sum(isinstance(module, Int8Linear) for module in integers.modules()) == 6 + 10 + 1
    assert {id(parameter) for parameter in integers.parameters()} < {id(parameter) for parameter in model.parameters()}
    assert integers.target_embedding.weight is model.target_embedding.weight
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    tokens, padding_mask = torch.randint(4, 29, (3, 7)), torch.ones(3, 7, dtype=torch.bool)
    exact, near = (m(tokens, padding_mask, tokens, padding_mask) for m in (model, integers))
    assert (near - exact).abs().max() < 0.05 * exact.abs().max()


def test_integers_off_a_processor_are_refused():
    with pytest.raises(InputError, match=r"int8 is for processors, and the model is on meta"):
        in_int8(nn.Linear(3, 2, device="meta"))


@pytest.mark.parametrize("exact", [True, False])  # False: a processor whose 8-bit kernels overflow
def test_a_product_of_the_largest_integers_is_exact_on_any_processor(monkeypatch, exact):
    found = int8.integer_kernels_are_exact()
    monkeypatch.setattr(int8, "integer_kernels_are_exact", lambda: exact and found)
    rows = torch.randint(-127, 128, (7, 2 * int8.EXACT_IN_FLOAT32 + 13), dtype=torch.int8)
    rows[0] = 127
    steps = torch.randint(-127, 128, (11, rows.size(1)), dtype=torch.int8)
    steps[0] = 127
    assert torch.equal(int8.integer_product(rows, steps).long(), rows.long() @ steps.long().T)
