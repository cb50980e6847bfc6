"""Recurrent layers: stacks of Elman networks, LSTM or GRU over packed sequences, on torch's kernels.

A state holds what one layer remembers: M vectors (the hidden state and, of an LSTM, the memory cell) in each of N
directions.

B batch, T tokens, D model, P packed tokens, I inputs of a layer, Q sequences, R rows, U units of a direction.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.nn.dropout import keep_mask
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedRecurrentStack
from heedful.nn.packing import Packing

CELLS: dict[str, type[nn.RNN | nn.LSTM | nn.GRU]] = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
GATES: dict[str, dict[str, int]] = {  # their places in the rows of torch's matrices
    "elman": {},
    "lstm": {"input_gate": 0, "forget_gate": 1, "output_gate": 3},
    "gru": {"reset_gate": 0, "update_gate": 1},
}


class RecurrentLayer(nn.Module):
    """Recurrent layer in one direction or in both, over packed sequences; torch's kernels compute the steps.

    The recurrent matrices begin orthogonal, the input matrices after Glorot & Bengio (2010), biases as zero but for
    that of an LSTM's forget gate, which is 1 (Jozefowicz et al. 2015, section 2.2).

    Args:
        config: the model configuration.
        inputs: the size of the input vectors.
        directions: 1, or 2 for a layer that reads forwards and backwards with half of the units each.
    """

    def __init__(self, config: RecurrentConfig, inputs: int, directions: int) -> None:
        super().__init__()
        self.units = config.d_model // directions
        self.vectors = 2 if config.cell == "lstm" else 1
        self.directions = directions
        self.rnn = CELLS[config.cell](inputs, self.units, bidirectional=directions == 2)
        self.gates = GATES[config.cell]
        self.residual = config.residual and inputs == config.d_model
        self.norm = nn.LayerNorm(inputs) if config.layer_norm else nn.Identity()
        self.hidden = nn.Identity()  # the inspector records the hidden states here
        for name, parameter in self.rnn.named_parameters():
            self._draw(name, parameter)

    def _draw(self, name: str, parameter: nn.Parameter) -> None:
        with torch.no_grad():
            for gate, part in enumerate(parameter.split(self.units)):
                if name.startswith("weight_hh"):
                    nn.init.orthogonal_(part)
                elif name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(part)
                else:
                    forget = self.vectors == 2 and gate == 1 and name.startswith("bias_ih")
                    part.fill_(1.0 if forget else 0.0)

    def begin(self, rows: int) -> Float[Tensor, "M N R U"]:
        """The state before the first token of each row: zeros."""
        return next(self.parameters()).new_zeros(self.vectors, self.directions, rows, self.units)

    def forward(
        self, x: Float[Tensor, "P I"], batch_sizes: Int[Tensor, " L"], state: Float[Tensor, "M N Q U"]
    ) -> tuple[Float[Tensor, "P D"], Float[Tensor, "M N Q U"]]:
        """Read packed sequences from a state; return the hidden state at each token, and the last state of each."""
        before = tuple(state) if self.vectors == 2 else state[0]
        out, after = self.rnn(PackedSequence(self.norm(x), batch_sizes), before)
        hidden = self.hidden(out.data)
        return x + hidden if self.residual else hidden, torch.stack(after) if self.vectors == 2 else after[None]


def gate(
    layer: RecurrentLayer,
    name: str,
    x: Float[Tensor, "T I"],
    before: Float[Tensor, "N U"],
    hidden: Float[Tensor, "T D"],
) -> Float[Tensor, "T D"]:
    """Compute the values of a gate over one sequence, which torch's kernels do not tell.

    Args:
        layer: the layer.
        name: the name of the gate, of `layer.gates`.
        x: the inputs of the layer.
        before: the hidden state of each direction before the first token that it reads.
        hidden: the hidden states, which the layer computed from the inputs; of both directions side by side.

    Returns:
        Values from 0 to 1, of both directions side by side.
    """
    weights = dict(layer.rnn.named_parameters())
    rows = slice(layer.gates[name] * layer.units, (layer.gates[name] + 1) * layer.units)
    found = []
    for suffix, first, states in zip(("_l0", "_l0_reverse"), before, hidden.chunk(len(before), dim=1), strict=False):
        backwards = suffix == "_l0_reverse"
        read = torch.cat([first[None], states.flip(0) if backwards else states])[:-1]
        previous = read.flip(0) if backwards else read
        inner = F.linear(layer.norm(x), weights[f"weight_ih{suffix}"][rows], weights[f"bias_ih{suffix}"][rows])
        outer = F.linear(previous, weights[f"weight_hh{suffix}"][rows], weights[f"bias_hh{suffix}"][rows])
        found.append(torch.sigmoid(inner + outer))
    return torch.cat(found, dim=1)


class RecurrentCache:
    """Cache of a stack of recurrent layers during decoding: the state of each layer for each row."""

    def __init__(self, states: Sequence[Float[Tensor, "M N R U"]]) -> None:
        self.states = list(states)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the states."""
        self.states = [state[:, :, rows] for state in self.states]

    def update(self, rows: Int[Tensor, " Q"], states: Sequence[Float[Tensor, "M N Q U"]]) -> None:
        """Replace the states of some rows, each named once."""
        self.states = [old.index_copy(2, rows, new) for old, new in zip(self.states, states, strict=True)]


class RecurrentDropout(nn.Module):
    """Dropout masks of packed tokens between recurrent layers: drawn for each token, or once for each sequence.

    The states of a layer are never dropped; with one draw for all steps of a sequence the dropout is variational
    (Gal & Ghahramani 2016).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.rate = config.dropout
        self.variational = config.variational_dropout

    def forward(self, packing: Packing, like: Float[Tensor, "P D"], count: int) -> list[Float[Tensor, "#P #D"]]:
        """Draw the masks of `count` places in a stack; in evaluation mode they are 1."""
        if not self.training or self.rate == 0:
            return [like.new_ones(1, 1).expand(len(like), 1)] * count
        if self.variational:
            sequences = like.new_empty(len(packing.rows), like.size(1))
            return [keep_mask(sequences, self.rate)[packing.sequence] for _ in range(count)]
        return [keep_mask(like, self.rate) for _ in range(count)]


class RecurrentStack(nn.Module):
    """Stack of recurrent layers over embedded tokens: in one direction a decoder, in two an encoder.

    Padding is left out, not masked: it changes nothing and costs nothing.

    Args:
        config: the model configuration.
        directions: 1, or 2 for layers that read forwards and backwards.
        inputs: the size of the input vectors; None: d_model.
    """

    def __init__(self, config: RecurrentConfig, directions: int = 1, inputs: int | None = None) -> None:
        super().__init__()
        sizes = [inputs or config.d_model] + [config.d_model] * (config.layers - 1)
        self.layers = nn.ModuleList(RecurrentLayer(config, size, directions) for size in sizes)
        self.dropout = RecurrentDropout(config)

    def forward(
        self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: RecurrentCache | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of padded rows of embedded tokens; documents in a row are read apart.

        Args:
            x: the last T tokens of each row.
            mask: which tokens are real, and where documents begin.
            cache: the states after earlier tokens, which become those after these tokens; None: there are none.
        """
        packing = Packing(mask.padding_mask[:, -x.size(1) :], mask.query_positions)
        states = cache.states if cache else self.begin(len(x)).states
        packed = packing.pack(x)
        first, *between, last = self.dropout(packing, packed, len(self.layers) + 1)
        before = [state[:, :, packing.rows] for state in states]
        packed, after = self.advance(packed * first, packing.batch_sizes, before, between)
        if cache:
            cache.update(packing.rows, after)
        return packing.unpack(packed * last)

    def named(self, name: str, sequence: str) -> NamedRecurrentStack:
        """Name the stack for the inspector."""
        return NamedRecurrentStack(name, sequence, self, self)

    def begin(self, rows: int) -> RecurrentCache:
        """Create the cache of rows without any token."""
        return RecurrentCache([layer.begin(rows) for layer in cast("Iterable[RecurrentLayer]", self.layers)])

    def advance(
        self,
        x: Float[Tensor, "P I"],
        batch_sizes: Int[Tensor, " L"],
        before: Sequence[Float[Tensor, "M N Q U"]],
        dropout: Sequence[Float[Tensor, "#P #D"]],
    ) -> tuple[Float[Tensor, "P D"], list[Float[Tensor, "M N Q U"]]]:
        """Read packed sequences from the states of the layers.

        Args:
            x: the input vectors.
            batch_sizes: the number of sequences at each step, see `Packing`.
            before: the state of each layer.
            dropout: the dropout masks of the inputs of all layers but the first.

        Returns:
            The hidden states of the last layer, and the state of each layer at the end of each sequence.
        """
        after = []
        for layer, state, mask in zip(self.layers, before, (1, *dropout), strict=True):
            x, last = layer(x * mask, batch_sizes, state)
            after.append(last)
        return x, after
