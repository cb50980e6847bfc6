import torch

from heedful.architectures.convolutional.layers import NormalisedLinear

X = torch.linspace(-2, 3, 7 * 5).view(7, 5)


def test_a_fresh_layer_is_the_linear_layer_of_its_directions():
    layer = NormalisedLinear(5, 3, 1.0)
    torch.testing.assert_close(layer(X), X @ layer.direction.T)


def test_a_row_of_weights_has_its_length_in_its_direction():
    layer = NormalisedLinear(5, 3, 1.0)
    with torch.no_grad():
        layer.direction.mul_(7.0)
        layer.length.copy_(torch.tensor([2.0, -3.0, 0.5]))
        layer.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    for row, direction, length in zip(layer.weight, layer.direction, (2.0, 3.0, 0.5), strict=True):
        torch.testing.assert_close(row.norm(), torch.tensor(length))
        torch.testing.assert_close((row @ direction).abs(), row.norm() * direction.norm())
    torch.testing.assert_close(layer(X), X @ layer.weight.T + layer.bias)


def test_it_equals_the_weight_normalisation_of_torch():
    layer, theirs = NormalisedLinear(5, 3, 1.0), torch.nn.Linear(5, 3)
    torch.nn.utils.parametrizations.weight_norm(theirs, dim=0)
    own = {"original0": layer.length, "original1": layer.direction}
    with torch.no_grad():
        layer.length.uniform_(0.5, 2)
        layer.bias.normal_()
        theirs.bias.copy_(layer.bias)
        for name, value in own.items():
            theirs.get_parameter(f"parametrizations.weight.{name}").copy_(value.view(3, -1))
    torch.testing.assert_close(layer(X), theirs(X))
    for name, value in own.items():
        given = theirs.get_parameter(f"parametrizations.weight.{name}")
        (wanted,) = torch.autograd.grad(theirs(X).square().sum(), given)
        (got,) = torch.autograd.grad(layer(X).square().sum(), value)
        torch.testing.assert_close(got.view(3, -1), wanted)


def test_outputs_begin_with_the_variance_that_was_asked_for():
    for gain in (1.0, 4.0):
        torch.manual_seed(1)
        outputs = NormalisedLinear(251, 401, gain)(torch.randn(307, 251))
        assert abs(outputs.var().item() / gain - 1) < 0.03
