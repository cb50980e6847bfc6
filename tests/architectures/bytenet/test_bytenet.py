"""ByteNet against loops over tokens and blocks, written here from Kalchbrenner et al. (2016)."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from children import ids, ones, padded, stirred
from heedful.architectures import TextClassifier
from heedful.architectures.bytenet.layers import ByteNetStack, DilatedConvolution, ResidualBlock, Unfolding
from heedful.architectures.bytenet.model import ByteNetEncoderDecoder
from heedful.architectures.bytenet.settings import ByteNetConfig
from heedful.architectures.parameters import count_parameters
from heedful.nn.masks import AttentionMask

CONFIG = ByteNetConfig(
    d_model=8, channels=5, encoder_layers=4, decoder_layers=4, max_dilation=4, dropout=0.0, tie="none"
)
close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(3)


def built(**changes: object) -> ByteNetEncoderDecoder:
    return stirred(ByteNetEncoderDecoder(replace(CONFIG, **changes), 23, 29))


def stack_of(layers: int, *, causal: bool, **changes: object) -> ByteNetStack:
    return stirred(ByteNetStack(replace(CONFIG, **changes), layers, causal=causal)).double().requires_grad_(False)


def mask_of(rows: int, length: int, *, causal: bool) -> AttentionMask:
    return AttentionMask(torch.ones(rows, length, dtype=torch.bool), length, causal=causal)


def normalised(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    mean = x.mean()
    return (x - mean) / ((x - mean).square().mean() + norm.eps).sqrt() * norm.weight + norm.bias


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    return layer.weight @ x + layer.bias


def plain_block(block: ResidualBlock, states: list[Tensor], dilation: int, *, causal: bool) -> list[Tensor]:
    """The left half of figure 3, a column at a time: 1 x 1, 1 x k and 1 x 1, each after layer norm and ReLU."""
    size = block.convolution.size
    inner = [normalised(block.norm, linear(block.narrow, normalised(block.norm_in, x).relu())).relu() for x in states]
    before = size - 1 if causal else (size - 1) // 2
    after = []
    for place, state in enumerate(states):
        seen = [place + (step - before) * dilation for step in range(size)]
        window = [inner[other] if 0 <= other < len(inner) else torch.zeros_like(inner[0]) for other in seen]
        middle = linear(block.convolution.linear, torch.cat(window))
        after.append(state + linear(block.widen, normalised(block.norm_out, middle).relu()))
    return after


def plain_stack(stack: ByteNetStack, x: list[Tensor], dilations: list[int], *, causal: bool) -> Tensor:
    for block, dilation in zip(stack.layers, dilations, strict=True):
        x = plain_block(block, x, dilation, causal=causal)
    last, norm, _ = stack.leave
    return torch.stack([normalised(norm, linear(last, state)).relu() for state in x])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_stack_equals_loops_over_columns_with_dilations_that_double_and_start_again(size, causal):
    stack, x = stack_of(7, causal=causal, kernel_size=size), torch.randn(2, 19, 8, dtype=torch.float64)
    got = stack(x, mask_of(2, 19, causal=causal))
    for row, want in zip(got, x, strict=True):
        close(row, plain_stack(stack, list(want), [1, 2, 4, 1, 2, 4, 1], causal=causal))


@pytest.mark.parametrize(("most", "dilations"), [(1, [1] * 6), (5, [1, 2, 4] * 2), (16, [1, 2, 4, 8, 16, 1])])
def test_dilations_are_powers_of_two_up_to_the_largest(most, dilations):
    stack = ByteNetStack(replace(CONFIG, max_dilation=most), 6, causal=True)
    assert [block.convolution.dilation for block in stack.layers] == dilations


def test_a_dilated_convolution_equals_that_of_torch():
    layer = DilatedConvolution(CONFIG, 3).double()
    x = torch.randn(2, 17, 5, dtype=torch.float64)
    kernels = layer.linear.weight.unflatten(1, (3, 5)).transpose(1, 2)  # outputs, inputs, places
    want = nn.functional.conv1d(x.transpose(1, 2), kernels, layer.linear.bias, dilation=3)
    close(layer(x), want.transpose(1, 2))


@pytest.mark.parametrize(("causal", "sides"), [(True, (16, 0)), (False, (8, 8))])
def test_a_token_sees_as_far_as_the_sum_of_the_dilations(causal, sides):
    stack = stirred(ByteNetStack(CONFIG, 4, causal=causal)).double()  # dilations 1, 2, 4 and 1
    x = torch.randn(1, 41, 8, dtype=torch.float64).requires_grad_()
    state = stack(x, mask_of(1, 41, causal=causal))[0, 20]
    seen = torch.autograd.grad(state.sum(), x)[0][0].abs().sum(1).nonzero()[:, 0].tolist()
    assert seen == list(range(20 - sides[0], 20 + sides[1] + 1))


@pytest.mark.parametrize("causal", [True, False])
def test_documents_in_one_row_are_each_alone(causal):
    stack, lengths = stack_of(3, causal=causal), [5, 1, 3, 7]
    x = torch.randn(1, sum(lengths), 8, dtype=torch.float64)
    documents = torch.repeat_interleave(torch.tensor([2, 3, 5, 7]), torch.tensor(lengths))[None]
    mask = mask_of(1, 16, causal=causal)
    got = stack(x, mask.within(documents))[0].split(lengths)
    for part, alone in zip(got, x[0].split(lengths), strict=True):
        close(part, stack(alone[None], mask_of(1, len(alone), causal=causal))[0])
    assert not torch.allclose(stack(x, mask)[0], torch.cat(got))


@pytest.mark.parametrize("parts", [[1] * 11, [5, 6], [2, 1, 7, 1]])
def test_parts_read_with_a_cache_equal_the_whole(parts):
    stack, x, read, got = stack_of(4, causal=True), torch.randn(3, 11, 8, dtype=torch.float64), 0, []
    cache = stack.begin(3)
    for part in x.split(parts, dim=1):
        read += part.size(1)
        mask = AttentionMask(torch.ones(3, read, dtype=torch.bool), part.size(1), causal=True)
        got.append(stack(part, mask, cache))
    close(torch.cat(got, dim=1), stack(x, mask_of(3, 11, causal=True)))


@pytest.mark.parametrize(("ratio", "extra"), [(1.0, 0), (1.07, 0), (1.2, 3), (2.0, 1)])
def test_a_source_gets_as_many_columns_as_target_tokens_are_expected(ratio, extra):
    """Formula 2: |t| = a |s| + b, whatever stands beside a sentence in its batch and wherever the padding is."""
    unfolding, lengths = Unfolding(replace(CONFIG, target_ratio=ratio, target_extra=extra)), [5, 1, 100, 7]
    sources = [torch.randn(length, 8) for length in lengths]
    for side in ("right", "left"):
        mask = padded([torch.ones(length) for length in lengths], side)[1]
        x = torch.randn(4, 100, 8).masked_scatter(mask[..., None], torch.cat(sources))
        columns, is_column = unfolding(x, mask)
        for row, real, source in zip(columns, is_column, sources, strict=True):
            want = math.ceil(round(ratio * len(source) + extra, 9))
            assert real.tolist() == [True] * want + [False] * (len(real) - want)
            assert torch.equal(row[: len(source)], source)
            assert torch.equal(row[len(source) : want], unfolding.blank.weight.expand(want - len(source), -1))


def plain_logits(model: ByteNetEncoderDecoder, source: list[int], target: list[int]) -> Tensor:
    """Logits of one pair, written from sections 3.1 and 3.2: the decoder reads column t with token t."""
    width = math.ceil(round(1.2 * len(source) + 1, 9))
    scale = 8**0.5
    sources, targets = (model.get_parameter(f"{side}_embedding.weight") for side in ("source", "target"))
    embedded = [sources[token] * scale for token in source]
    embedded += [model.unfolding.blank.weight[0]] * (width - len(source))
    columns = plain_stack(model.encoder, embedded, [1, 2, 4, 1], causal=False)
    joined = []
    for place, token in enumerate(target):
        column = columns[place] if place < width else torch.zeros(8, dtype=torch.float64)
        vector = torch.cat([targets[token] * scale, column])
        joined.append(linear(model.decoder.join, vector))
    return plain_stack(model.decoder.stack, joined, [1, 2, 4, 1], causal=True) @ model.output.weight.T


def test_a_translator_equals_the_formulas_and_goes_beyond_the_columns_of_its_encoder():
    model = built(target_extra=1).double()
    sources, targets = [ids(1, n)[0] for n in (5, 3, 9)], [ids(1, n)[0] for n in (4, 9, 17)]
    for side in ("left", "right"):
        got = model(*padded(sources, side), *padded(targets, side))
        real = padded(targets, side)[1]
        for row, mask, source, target in zip(got, real, sources, targets, strict=True):
            close(row[mask], plain_logits(model, source.tolist(), target.tolist()))


def test_every_parameter_gets_a_gradient():
    model, tokens = built(), [ids(1, n)[0] for n in (7, 3, 5)]
    model(*padded(tokens, "right"), *padded(tokens, "right")).square().sum().backward()
    idle = [name for name, parameter in model.named_parameters() if not parameter.grad.abs().sum() > 0]
    assert idle == []


def test_parameters_are_counted_by_kind():
    counts = count_parameters(built(encoder_layers=2, decoder_layers=3))
    assert counts.weights == {
        "embeddings": 8 * (23 + 29 + 1),
        "norms": 5 * (8 + 5 + 5) + 2 * 8,
        "linear": 5 * 2 * 8 * 5 + 2 * 8 * 8 + 16 * 8,
        "convolutions": 5 * 3 * 5 * 5,
        "output": 8 * 29,
    }


def test_ends_are_tied_as_the_recipe_says():
    model = ByteNetEncoderDecoder(replace(CONFIG, tie="all"), 23, 23)
    assert model.output.weight is model.source_embedding.weight is model.target_embedding.weight


def test_the_shape_is_told_in_words():
    assert CONFIG.shape() == (
        "dilated convolutions, 4+4 blocks, kernel size 3, dilation up to 4, d_model 8, 5 channels"
    )
    assert replace(CONFIG, family="encoder").shape().startswith("dilated convolutions, 4 blocks, ")
    assert replace(CONFIG, family="decoder", decoder_layers=1, channels=None).shape() == (
        "dilated convolutions, 1 block, kernel size 3, dilation up to 4, d_model 8, 4 channels"
    )


def test_any_length_is_read():
    model, tokens = built().eval(), ids(2, 301)
    assert model.max_positions() is None
    assert model.start(tokens, ones(tokens)).step(tokens[:, 0]).shape == (2, 29)


def test_a_decoder_classifies_by_its_last_token():
    model, tokens = TextClassifier(replace(CONFIG, family="decoder"), 23, 3).eval(), ids(2, 11)
    states = model.backbone(tokens, ones(tokens))
    torch.testing.assert_close(model(tokens, ones(tokens)), model.output(states[:, -1]))
