"""Attention of convolutional decoders against formulas 1 and 2 of Gehring et al. (2017), a token at a time."""

from functools import partial

import torch
from torch import Tensor

from heedful.architectures.convolutional.layers import (
    ConvolutionalDecoder,
    ConvolvedSource,
    ScaledGradient,
    SourceAttention,
)
from heedful.nn.masks import AttentionMask
from plain_convolution import CONFIG, linear, stirred

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


def source(*lengths: int) -> ConvolvedSource:
    keys, values = torch.randn(2, len(lengths), max(lengths), CONFIG.d_model, dtype=torch.float64)
    return ConvolvedSource(keys, values, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])


def plain_attention(attention: SourceAttention, h: Tensor, g: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Output of one decoder layer for one token, with the attention of its layer."""
    d = (linear(attention.query, h) + g) / 2**0.5
    powers = [(d @ z).exp() for z in keys]
    context = sum(power / sum(powers) * value for power, value in zip(powers, values, strict=True))
    m = len(keys)
    return (h + linear(attention.out, m * (1 / m) ** 0.5 * context)) / 2**0.5


def test_attention_equals_the_formulas_for_each_token():
    attention, seen = stirred(SourceAttention(CONFIG)), source(4, 1, 7)
    h, g = torch.randn(3, 5, 5, dtype=torch.float64), torch.randn(3, 5, 7, dtype=torch.float64)
    got = attention(h, g, seen)
    for row, (length, place) in enumerate((length, place) for length in (4, 1, 7) for place in range(5)):
        batch = row // 5
        parts = h[batch, place], g[batch, place], seen.keys[batch, :length], seen.values[batch, :length]
        close(got[batch, place], plain_attention(attention, *parts))


def test_a_decoder_equals_loops_over_tokens_and_layers():
    decoder, seen = stirred(ConvolutionalDecoder(CONFIG)), source(4, 6)
    x = torch.randn(2, 5, 7, dtype=torch.float64)
    got = decoder(x, AttentionMask(torch.ones(2, 5, dtype=torch.bool), 5, causal=True), seen)
    table, stack = dict(decoder.named_parameters())["stack.positions.table.weight"], decoder.stack
    for row, length, keys, values, states in zip(x, (4, 6), seen.keys, seen.values, got, strict=True):
        g = [token + table[place] for place, token in enumerate(row)]
        h = [linear(stack.enter, token) for token in g]
        for layer, attention in zip(stack.layers, decoder.attentions, strict=True):
            wide, after = [torch.zeros_like(h[0])] * 2 + h, []
            for place in range(5):
                value, gate = linear(layer.linear, torch.cat(wide[place : place + 3])).chunk(2)
                found = plain_attention(attention, value * gate.sigmoid(), g[place], keys[:length], values[:length])
                after.append((h[place] + found) / 2**0.5)
            h = after
        close(states, torch.stack([linear(stack.leave, state) for state in h]))


def test_each_layer_attends_to_states_and_to_words_and_the_encoder_gets_a_share_of_the_gradient():
    decoder = ConvolutionalDecoder(CONFIG)
    states, embedded = torch.randn(2, 2, 5, 7).requires_grad_()
    seen = decoder.source(states, embedded, torch.ones(2, 5, dtype=torch.bool))
    close(seen.keys, states)
    close(seen.values, (states + embedded) / 2**0.5, atol=1e-6, rtol=1e-6)
    to_states, to_words = torch.autograd.grad(seen.values.sum(), (states, embedded))
    close(to_words, torch.full_like(to_words, 0.5**0.5), atol=1e-6, rtol=1e-6)
    close(to_states * CONFIG.decoder_layers, to_words, atol=1e-6, rtol=1e-6)


def test_a_scaled_gradient_changes_no_value():
    x = torch.randn(3, 5, requires_grad=True)
    y = ScaledGradient.apply(x, 0.25)
    assert torch.equal(y, x)
    y.square().sum().backward()
    assert torch.equal(x.grad, x.detach() / 2)
