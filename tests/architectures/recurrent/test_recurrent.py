"""Recurrent layers held to the formulas of their papers, one step after another in float64."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.architectures.recurrent.layers import Packing, RecurrentDropout, RecurrentLayer, RecurrentStack, gate
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.nn.masks import AttentionMask

close = partial(torch.testing.assert_close, atol=1e-6, rtol=1e-6)
LENGTHS = [3, 7, 1, 5]
CONFIG = RecurrentConfig(d_model=6, layers=2, dropout=0.0)


def elman(x: Tensor, state: tuple[Tensor, ...], w: dict[str, Tensor]) -> tuple[Tensor, ...]:
    return (torch.tanh(w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ state[0] + w["bias_hh"]),)


def lstm(x: Tensor, state: tuple[Tensor, ...], w: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000."""
    hidden, cell = state
    read, forget, new, write = (w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ hidden + w["bias_hh"]).chunk(4)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(read) * torch.tanh(new)
    return torch.sigmoid(write) * torch.tanh(cell), cell


def gru(x: Tensor, state: tuple[Tensor, ...], w: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Cho et al. 2014, with the reset gate after the recurrent product."""
    ours, theirs = (w["weight_ih"] @ x + w["bias_ih"]).chunk(3), (w["weight_hh"] @ state[0] + w["bias_hh"]).chunk(3)
    reset, update = torch.sigmoid(ours[0] + theirs[0]), torch.sigmoid(ours[1] + theirs[1])
    new = torch.tanh(ours[2] + reset * theirs[2])
    return ((1 - update) * new + update * state[0],)


STEPS = {"elman": elman, "lstm": lstm, "gru": gru}


def run_by_hand(layer: Any, xs: Tensor, step, backwards: bool) -> Tensor:
    """The hidden states of one direction of a layer over one sequence."""
    suffix = "_l0_reverse" if backwards else "_l0"
    weights = {name.removesuffix(suffix): p for name, p in layer.rnn.named_parameters() if name.endswith(suffix)}
    state = tuple(torch.zeros(layer.units, dtype=torch.float64) for _ in range(layer.vectors))
    found = []
    for x in layer.norm(xs).flip(0) if backwards else layer.norm(xs):
        state = step(x, state, weights)
        found.append(state[0])
    return torch.stack(found[::-1] if backwards else found)


def batch() -> tuple[Tensor, AttentionMask]:
    padding_mask = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
    return torch.randn(4, 7, 6, dtype=torch.float64), AttentionMask(padding_mask, 7, causal=False)


def perturbed(stack: RecurrentStack) -> RecurrentStack:
    """Random biases and norms: those of a new stack hide mistakes."""
    for parameter in stack.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter)
    return stack.double().eval()


@torch.no_grad()
@pytest.mark.parametrize("cell", STEPS)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("option", ["plain", "residual", "layer_norm"])
def test_a_stack_computes_the_formulas_of_its_cells(cell, directions, option):
    more = {} if option == "plain" else {option: True}
    stack = perturbed(RecurrentStack(replace(CONFIG, cell=cell, **more), directions))
    x, mask = batch()
    got = stack(x, mask)
    for row, length, found in zip(x, LENGTHS, got, strict=True):
        want = row[:length]
        for layer in stack.layers:
            parts = [run_by_hand(layer, want, STEPS[cell], backwards) for backwards in (False, True)[:directions]]
            want = torch.cat(parts, dim=-1) + (want if option == "residual" else 0)
        close(found[:length], want)
        assert not found[length:].any()


@torch.no_grad()
@pytest.mark.parametrize("cell", STEPS)
def test_a_stack_equals_torch_on_the_same_weights(cell):
    stack = perturbed(RecurrentStack(replace(CONFIG, cell=cell), 2))
    kind = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[cell]
    theirs = kind(6, 3, num_layers=2, bidirectional=True, batch_first=True).double()
    for number, layer in enumerate(stack.layers):
        for name, parameter in layer.rnn.named_parameters():
            theirs.get_parameter(name.replace("_l0", f"_l{number}")).copy_(parameter)
    x, mask = batch()
    for row, length, found in zip(x, LENGTHS, stack(x, mask), strict=True):
        close(found[:length], theirs(row[None, :length])[0][0])


@torch.no_grad()
def test_a_cache_goes_on_where_the_earlier_tokens_ended():
    stack = perturbed(RecurrentStack(CONFIG))
    x, mask = batch()
    cache = stack.begin(4)
    some = AttentionMask(mask.padding_mask[:, :3], 3, causal=True)
    first = stack(x[:, :3], some, cache)
    rest = stack(x[:, 3:], AttentionMask(mask.padding_mask, 4, causal=True), cache)
    close(torch.cat([first, rest], dim=1), stack(x, mask))


def test_recurrent_matrices_begin_orthogonal_and_forget_gates_open():
    layer = RecurrentLayer(replace(CONFIG, d_model=7), 5, 1)
    weights = dict(layer.rnn.named_parameters())
    for part in weights["weight_hh_l0"].split(7):
        close(part @ part.T, torch.eye(7))
    assert weights["bias_ih_l0"].split(7)[1].eq(1).all()
    assert weights["bias_ih_l0"].sum() + weights["bias_hh_l0"].abs().sum() == 7


def test_variational_dropout_drops_the_same_units_at_all_steps_of_a_sequence():
    _, mask = batch()
    packing = Packing(mask.padding_mask, mask.query_positions)
    packed = torch.ones(len(packing.sequence), 101)
    for variational in (False, True):
        drop = RecurrentDropout(replace(CONFIG, dropout=0.3, variational_dropout=variational)).train()
        first, second = drop.masks(packing, packed, 2)
        same = [
            torch.equal(first[packing.sequence == number][0], first[packing.sequence == number][-1])
            for number in range(3)
        ]
        assert same == [variational] * 3
        assert not torch.equal(first, second)
        assert 0.2 < (first == 0).float().mean() < 0.4


def test_nothing_is_dropped_in_evaluation_mode():
    _, mask = batch()
    packing = Packing(mask.padding_mask, mask.query_positions)
    dropout = RecurrentDropout(replace(CONFIG, dropout=0.3)).eval()
    masks = dropout.masks(packing, torch.ones(len(packing.sequence), 5), 3)
    assert all(mask.eq(1).all() for mask in masks)


@torch.no_grad()
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_gates_are_those_of_the_formulas(cell, directions):
    stack = perturbed(RecurrentStack(replace(CONFIG, cell=cell, layers=1, layer_norm=True), directions))
    layer: Any = stack.layers[0]
    xs, before = torch.randn(5, 6).double(), torch.randn(directions, layer.units).double()
    state = torch.stack([before, torch.randn(directions, layer.units).double()][: layer.vectors])[:, :, None]
    hidden, _ = layer(xs, torch.ones(5, dtype=torch.long), state)
    for name, number in layer.gates.items():
        found = gate(layer, name, xs, before, hidden)
        for backwards, (ours, states) in enumerate(
            zip(found.chunk(directions, 1), hidden.chunk(directions, 1), strict=True)
        ):
            suffix = "_l0_reverse" if backwards else "_l0"
            w = {key.removesuffix(suffix): p for key, p in layer.rnn.named_parameters() if key.endswith(suffix)}
            previous = before[backwards]
            for step in reversed(range(5)) if backwards else range(5):
                x = layer.norm(xs[step])
                z = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ previous + w["bias_hh"]
                close(ours[step], torch.sigmoid(z[number * layer.units :][: layer.units]))
                previous = states[step]
