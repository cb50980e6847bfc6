"""Decoders with attention held to the formulas of Bahdanau et al. (2015) and Luong et al. (2015), in float64."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.architectures.recurrent.decoder import DECODERS, DecoderState, RecurrentDecoder
from heedful.architectures.recurrent.settings import RecurrentConfig

close = partial(torch.testing.assert_close, atol=1e-6, rtol=1e-6)
CONFIG = RecurrentConfig(cell="gru", d_model=5, layers=3, dropout=0.0)
KINDS = [*((name, False) for name in DECODERS), *((name, True) for name in ("dot", "general", "concat"))]
SOURCES, TARGETS = [3, 7, 1], [5, 1, 3]


def built(attention: str, input_feeding: bool = False, **more: object) -> Any:
    decoder = DECODERS[attention](replace(CONFIG, attention=attention, input_feeding=input_feeding, **more))
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.7)
    return decoder.double().eval()


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def given() -> tuple[Tensor, Tensor, DecoderState]:
    """Embedded targets, the states of an encoder, and the first state of the decoder."""
    x, memory = torch.randn(3, 5, 5).double(), torch.randn(3, 7, 5).double()
    return (
        x,
        memory,
        DecoderState([torch.randn(1, 1, 3, 5).double() for _ in range(CONFIG.layers)], torch.zeros(3, 5).double()),
    )


def read(decoder: Any, x: Tensor, layers: list[Tensor], residual: bool) -> tuple[Tensor, list[Tensor]]:
    """One step of the recurrent layers for one row; formula 6 of Wu et al. (2016) adds the input of a layer."""
    after = []
    for layer, state in zip(decoder.stack.layers, layers, strict=True):
        hidden = layer.rnn(x[None], state[None])[0][0]
        x = x + hidden if residual and len(x) == len(hidden) else hidden
        after.append(hidden)
    return x, after


def context(decoder: Any, kind: str, query: Tensor, memory: Tensor) -> Tensor:
    """The mean of the memory under a softmax of the scores, one source token after another."""
    w = dict(decoder.score.named_parameters())
    scores = {
        "dot": lambda k: query @ k,
        "general": lambda k: query @ (w["key.weight"] @ k),
        "concat": lambda k: w["score.weight"][0] @ torch.tanh(w["query.weight"] @ query + w["key.weight"] @ k),
    }
    score = scores["concat" if kind == "additive" else kind]
    weights = torch.stack([score(k) for k in memory]).softmax(0)
    return torch.stack([weight * k for weight, k in zip(weights, memory, strict=True)]).sum(0)


def by_hand(
    decoder: Any, kind: str, feeding: bool, x: Tensor, memory: Tensor, layers: list[Tensor], residual: bool
) -> Tensor:
    """The hidden states of one row, one target token after another."""
    fed, found = torch.zeros(5).double(), []
    for token in x:
        if kind == "additive":
            seen = context(decoder, kind, layers[-1], memory)
            hidden, layers = read(decoder, torch.cat([token, seen]), layers, residual)
            fed = torch.tanh(decoder.combine(torch.cat([hidden, token, seen])))
        else:
            hidden, layers = read(decoder, torch.cat([token, fed]) if feeding else token, layers, residual)
            seen = [] if kind == "none" else [context(decoder, kind, hidden, memory)]
            fed = torch.tanh(decoder.combine(torch.cat([*seen, hidden]))) if seen else hidden
        found.append(fed)
    return torch.stack(found)


@torch.no_grad()
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("attention", "feeding"), KINDS)
def test_a_decoder_computes_the_formulas_of_its_paper(attention, feeding, residual):
    decoder = built(attention, feeding, residual=residual)
    x, memory, state = given()
    source = decoder.encoded(memory, mask_of(SOURCES))
    got = decoder(x, mask_of(TARGETS), source, state)
    for row, (length, longest) in enumerate(zip(TARGETS, SOURCES, strict=True)):
        layers = [layer[0, 0, row] for layer in state.layers]
        want = by_hand(decoder, attention, feeding, x[row, :length], memory[row, :longest], layers, residual)
        close(got[row, :length], want)


@torch.no_grad()
@pytest.mark.parametrize("attention", ["none", "dot", "general", "concat"])
def test_all_tokens_at_once_equal_one_step_after_another(attention):
    decoder = built(attention)
    x, memory, state = given()
    source = decoder.encoded(memory, mask_of(SOURCES))
    both = [
        forward(x, mask_of(TARGETS), source, state) for forward in (decoder, partial(RecurrentDecoder.forward, decoder))
    ]
    close(both[0][mask_of(TARGETS)], both[1][mask_of(TARGETS)])


@pytest.mark.parametrize(("attention", "feeding"), KINDS)
@pytest.mark.parametrize("cell", ["elman", "lstm", "gru"])
def test_every_parameter_of_a_decoder_has_a_gradient(attention, feeding, cell):
    decoder = built(attention, feeding, cell=cell).train()
    x, memory, state = given()
    vectors = 2 if cell == "lstm" else 1
    state = DecoderState([layer.expand(vectors, -1, -1, -1) for layer in state.layers], state.output)
    decoder(x, mask_of(TARGETS), decoder.encoded(memory, mask_of(SOURCES)), state).pow(2).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in decoder.parameters())
