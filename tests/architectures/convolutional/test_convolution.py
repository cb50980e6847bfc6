"""Gated convolutions against loops over tokens and torch's own kernels, written here from the papers."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from heedful.architectures.convolutional.layers import ConvolutionalStack, GatedConvolution
from heedful.nn.masks import AttentionMask
from plain_convolution import CONFIG, linear, stirred

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


def plain_stack(stack: ConvolutionalStack, x: Tensor, before: int, behind: int) -> Tensor:
    """Hidden states of one row of embedded tokens, a token at a time."""
    table = dict(stack.named_parameters()).get("positions.table.weight")
    embedded = [row + (0 if table is None else table[place]) for place, row in enumerate(x)]
    states = [linear(stack.enter, row) for row in embedded]
    for layer in stack.layers:
        nothing = torch.zeros_like(states[0])
        wide = [nothing] * before + states + [nothing] * behind
        after = []
        for place, state in enumerate(states):
            seen = torch.cat(wide[place : place + before + behind + 1])
            value, gate = linear(layer.linear, seen).chunk(2)
            after.append((state + value / (1 + (-gate).exp())) / 2**0.5)
        states = after
    return torch.stack([linear(stack.leave, state) for state in states])


@pytest.mark.parametrize("positions", ["learned", "none"])
@pytest.mark.parametrize(
    ("causal", "size", "sides"),
    [
        (True, 3, (2, 0)),
        (True, 4, (3, 0)),
        (True, 1, (0, 0)),
        (False, 3, (1, 1)),
        (False, 4, (1, 2)),
        (False, 5, (2, 2)),
    ],
)
def test_a_stack_equals_loops_over_tokens(positions, causal, size, sides):
    config = replace(CONFIG, kernel_size=size, positions=positions)
    stack = stirred(ConvolutionalStack(config, 2, causal=causal))
    x = torch.randn(2, 11, 7, dtype=torch.float64)
    got = stack(x, AttentionMask(torch.ones(2, 11, dtype=torch.bool), 11, causal=causal))
    for row, want in zip(got, x, strict=True):
        close(row, plain_stack(stack, want, *sides))


def test_a_gated_convolution_equals_those_of_torch():
    layer, x = stirred(GatedConvolution(CONFIG)), torch.randn(3, 13, 5, dtype=torch.float64)
    kernels = layer.linear.weight.unflatten(1, (3, 5)).transpose(1, 2)  # outputs, inputs, places
    want = torch.nn.functional.conv1d(x.transpose(1, 2), kernels, layer.linear.bias)
    close(layer(x), torch.nn.functional.glu(want, dim=1).transpose(1, 2))


@pytest.mark.parametrize("causal", [True, False])
def test_documents_in_one_row_are_each_alone(causal):
    stack, lengths = stirred(ConvolutionalStack(CONFIG, 3, causal=causal)), [5, 1, 3, 7]
    x = torch.randn(1, sum(lengths), 7, dtype=torch.float64)
    documents = torch.repeat_interleave(torch.tensor([2, 3, 5, 7]), torch.tensor(lengths))[None]
    mask = AttentionMask(torch.ones(1, 16, dtype=torch.bool), 16, causal=causal)
    got = stack(x, mask.within(documents))[0].split(lengths)
    for part, alone in zip(got, x[0].split(lengths), strict=True):
        whole = torch.ones(1, len(alone), dtype=torch.bool)
        close(part, stack(alone[None], AttentionMask(whole, len(alone), causal=causal))[0])
    assert not torch.allclose(stack(x, mask)[0], torch.cat(got))


@pytest.mark.parametrize("parts", [[1] * 11, [5, 6], [2, 1, 7, 1]])
def test_parts_read_with_a_cache_equal_the_whole(parts):
    stack = stirred(ConvolutionalStack(CONFIG, 2, causal=True))
    x, cache, read = torch.randn(3, 11, 7, dtype=torch.float64), stack.begin(3), 0
    cache.inputs = [inputs.double() for inputs in cache.inputs]
    got = []
    for part in x.split(parts, dim=1):
        read += part.size(1)
        got.append(stack(part, AttentionMask(torch.ones(3, read, dtype=torch.bool), part.size(1), causal=True), cache))
    close(torch.cat(got, dim=1), stack(x, AttentionMask(torch.ones(3, 11, dtype=torch.bool), 11, causal=True)))


def test_a_token_sees_as_far_as_layers_times_kernel():
    for causal, sides in ((True, (6, 0)), (False, (3, 3))):
        stack = stirred(ConvolutionalStack(CONFIG, 3, causal=causal))
        x = torch.randn(1, 17, 7, dtype=torch.float64).requires_grad_()
        state = stack(x, AttentionMask(torch.ones(1, 17, dtype=torch.bool), 17, causal=causal))[0, 8]
        seen = torch.autograd.grad(state.sum(), x)[0][0].abs().sum(1).nonzero()[:, 0].tolist()
        assert seen == list(range(8 - sides[0], 8 + sides[1] + 1))


def test_variance_stays_through_the_layers_of_a_fresh_stack():
    """Section 3.5 of Gehring et al. (2017): weights are drawn for small inputs, with dropout taken into account."""
    config = replace(CONFIG, d_model=64, channels=None, kernel_size=3, positions="none", dropout=0.2)
    for dropout in (0.0, 0.2):
        torch.manual_seed(5)
        stack = ConvolutionalStack(replace(config, dropout=dropout), 13, causal=True).train()
        inputs = []
        for layer in stack.layers:
            layer.register_forward_hook(lambda _, given, __, found=inputs: found.append(given[0]))
        x = torch.randn(31, 101, 64) * 0.1
        stack(x, AttentionMask(torch.ones(31, 101, dtype=torch.bool), 101, causal=True))
        sizes = [x[:, 2:].var().item() / 0.01 for x in inputs]
        assert all(0.7 < size < 1.3 for size in sizes), sizes


def test_deviations_of_fresh_weights_are_those_of_the_paper():
    stack = ConvolutionalStack(replace(CONFIG, d_model=61, channels=83, dropout=0.2), 2, causal=True)
    wanted = {"enter": 0.8 / 61, "layers.0.linear": 4 * 0.8 / (3 * 83), "layers.1.linear": 4 * 0.8 / (3 * 83)}
    for name, variance in (wanted | {"leave": 1 / 83}).items():
        assert abs(stack.get_parameter(f"{name}.direction").var().item() / variance - 1) < 0.1
        assert stack.get_parameter(f"{name}.bias").abs().max() == 0
