"""Recurrent layers: stacks of Elman networks, LSTM or GRU over packed sequences, on torch's kernels.

The state of a layer consists of M vectors (the hidden state and, in an LSTM, the memory cell) in each of N directions.

B batch, T tokens, D model, P packed tokens, L steps, I inputs of a layer, Q sequences, R rows, U units of a direction.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.nn.dropout import Dropout, keep_mask
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedRecurrentStack

CELLS: dict[str, type[nn.RNN | nn.LSTM | nn.GRU]] = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
GATES: dict[str, dict[str, int]] = {  # the index of each gate in torch's matrices, which stack them
    "elman": {},
    "lstm": {"input_gate": 0, "forget_gate": 1, "output_gate": 3},
    "gru": {"reset_gate": 0, "update_gate": 1},
}


class Packing:
    """Order of the real tokens in a padded batch, by step and then by sequence, as in torch's `PackedSequence`.

    A sequence is a row without its padding, or one of several documents in a row. The longest sequences come first, so
    the sequences that have a token at a given step are always the first ones.

    Args:
        padding_mask: True for real tokens.
        positions: The position of each token in its document, from 0.

    Attributes:
        rows: The row of each sequence.
        batch_sizes: The number of sequences with a token at each step; on the CPU, as torch requires.
        sequence: The index of the sequence of each packed token.
    """

    def __init__(self, padding_mask: Bool[Tensor, "B T"], positions: Int[Tensor, "B T"]) -> None:
        self.shape = padding_mask.shape
        # A sequence starts where a document does, or at the first real token after padding.
        begins = padding_mask & (positions == 0)
        begins[:, 0] |= padding_mask[:, 0]
        begins[:, 1:] |= padding_mask[:, 1:] & ~padding_mask[:, :-1]
        index = padding_mask.flatten().nonzero()[:, 0]  # (P,), the index of each real token in the flattened batch
        first = begins.flatten()[index].nonzero()[:, 0]  # (Q,), the first token of each sequence among the real tokens
        lengths = torch.diff(first, append=first.new_tensor([len(index)]))
        ranked = lengths.argsort(descending=True, stable=True)
        rank = torch.empty_like(ranked).scatter_(0, ranked, torch.arange(len(ranked), device=ranked.device))
        # Tokens are sorted by their step in the sequence, and within a step by the rank of the sequence.
        step = torch.arange(len(index), device=index.device) - first.repeat_interleave(lengths)
        order = (step * len(ranked) + rank.repeat_interleave(lengths)).argsort()
        self.rows: Int[Tensor, " Q"] = index[first[ranked]] // padding_mask.size(1)
        self.batch_sizes: Int[Tensor, " L"] = torch.bincount(step).cpu()
        self.sequence: Int[Tensor, " P"] = rank.repeat_interleave(lengths)[order]
        self._index: Int[Tensor, " P"] = index[order]

    def pack(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "P D"]:
        return x.flatten(0, 1)[self._index]

    def unpack(self, packed: Float[Tensor, "P D"]) -> Float[Tensor, "B T D"]:
        """Copy packed tokens back to a padded batch, with zeros as padding."""
        padded = packed.new_zeros(self.shape.numel(), packed.size(-1))
        return padded.index_copy(0, self._index, packed).unflatten(0, self.shape)


class RecurrentLayer(nn.Module):
    """Recurrent layer in one direction or in both, over packed sequences.

    Recurrent matrices are initially orthogonal, input matrices uniform (Glorot & Bengio 2010), and biases zero, except
    an LSTM's forget gate bias, which is 1 (Jozefowicz et al. 2015, section 2.2).

    Args:
        config: The model configuration.
        inputs: The size of the input vectors.
        directions: 1, or 2 for a layer that reads forwards and backwards, with half of the units in each direction.
    """

    def __init__(self, config: RecurrentConfig, inputs: int, directions: int) -> None:
        super().__init__()
        self.units = config.d_model // directions
        self.vectors = 2 if config.cell == "lstm" else 1
        self.directions = directions
        self.rnn = CELLS[config.cell](inputs, self.units, bidirectional=directions == 2)
        self.gates = GATES[config.cell]
        # The inputs of the first layer may have a different size, for example with input feeding, and then cannot be
        # added to its outputs.
        self.residual = config.residual and inputs == config.d_model
        self.norm = nn.LayerNorm(inputs) if config.layer_norm else nn.Identity()
        self.hidden = nn.Identity()  # the inspector records the hidden states here
        for name, parameter in self.rnn.named_parameters():
            # torch stacks the matrices of all gates; each is initialised separately, because orthogonal matrices are
            # square.
            for gate, part in enumerate(parameter.detach().split(self.units)):
                if name.startswith("weight_hh"):
                    nn.init.orthogonal_(part)
                elif name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(part)
                else:
                    # An open forget gate lets gradients pass through the memory cell from the first update.
                    forget = self.vectors == 2 and gate == 1 and name.startswith("bias_ih")
                    nn.init.constant_(part, 1.0 if forget else 0.0)

    def begin(self, rows: int) -> Float[Tensor, "M N R U"]:
        return next(self.parameters()).new_zeros(self.vectors, self.directions, rows, self.units)

    def forward(
        self, x: Float[Tensor, "P I"], batch_sizes: Int[Tensor, " L"], state: Float[Tensor, "M N Q U"]
    ) -> tuple[Float[Tensor, "P D"], Float[Tensor, "M N Q U"]]:
        """Compute the hidden state at each token of packed sequences, and the last state of each sequence."""
        # In torch, the state of an LSTM is a pair of tensors (N Q U each); other cells have one tensor.
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
    """Compute the values of a gate, from 0 to 1, for each token of a sequence; torch's kernels do not return them.

    Args:
        layer: The layer.
        name: The name of the gate, one of `layer.gates`.
        x: The inputs of the layer.
        before: The hidden state of each direction before the first token that it reads.
        hidden: The hidden states of the layer for these inputs, with the directions concatenated.
    """
    weights = dict(layer.rnn.named_parameters())
    # torch stacks the matrices of all gates, U rows each.
    rows = slice(layer.gates[name] * layer.units, (layer.gates[name] + 1) * layer.units)
    values = []
    for suffix, first, states in zip(("_l0", "_l0_reverse"), before, hidden.chunk(len(before), dim=1), strict=False):
        # A gate depends on the previous hidden state, which in the backward direction belongs to the next token.
        backwards = suffix == "_l0_reverse"
        history = torch.cat([first[None], states.flip(0) if backwards else states])[:-1]
        previous = history.flip(0) if backwards else history
        inner = F.linear(layer.norm(x), weights[f"weight_ih{suffix}"][rows], weights[f"bias_ih{suffix}"][rows])
        outer = F.linear(previous, weights[f"weight_hh{suffix}"][rows], weights[f"bias_hh{suffix}"][rows])
        values.append(torch.sigmoid(inner + outer))
    return torch.cat(values, dim=1)


class RecurrentCache:
    """Cache of a stack of recurrent layers: the state of each layer for each row."""

    def __init__(self, states: Sequence[Float[Tensor, "M N R U"]]) -> None:
        self.states = list(states)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.states = [state[:, :, rows] for state in self.states]

    def update(self, rows: Int[Tensor, " Q"], states: Sequence[Float[Tensor, "M N Q U"]]) -> None:
        """Replace the states of some rows; no row may occur twice."""
        # Not in place, because the backward pass may need the previous states.
        self.states = [old.index_copy(2, rows, new) for old, new in zip(self.states, states, strict=True)]


class RecurrentDropout(Dropout):
    """Dropout between recurrent layers, not on their states, with a new mask for each token or for each sequence.

    One mask for all tokens of a sequence is variational dropout (Gal & Ghahramani 2016).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config.dropout)
        self.variational = config.variational_dropout

    def masks(self, packing: Packing, like: Float[Tensor, "P D"], count: int) -> list[Float[Tensor, "#P #D"]]:
        """Sample `count` dropout masks, for the input of a stack, between its layers and for its output.

        In evaluation mode, or if p is 0, the masks are 1.
        """
        if not self.training or self.p == 0:
            return [like.new_ones(1, 1).expand(len(like), 1)] * count
        if self.variational:
            # Q D, repeated for the tokens of each sequence: P D.
            sequences = like.new_empty(len(packing.rows), like.size(1))
            return [keep_mask(sequences, self.p)[packing.sequence] for _ in range(count)]
        return [keep_mask(like, self.p) for _ in range(count)]


class RecurrentStack(nn.Module):
    """Stack of recurrent layers over embedded tokens: a decoder has one direction, an encoder one or two.

    Padding is not processed: the real tokens are packed.

    Args:
        config: The model configuration.
        directions: 1, or 2 for layers that read forwards and backwards.
        inputs: The size of the input vectors, by default d_model.
    """

    def __init__(self, config: RecurrentConfig, directions: int = 1, inputs: int | None = None) -> None:
        super().__init__()
        sizes = [inputs or config.d_model] + [config.d_model] * (config.layers - 1)
        self.layers = nn.ModuleList(RecurrentLayer(config, size, directions) for size in sizes)
        self.dropout = RecurrentDropout(config)

    def forward(
        self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: RecurrentCache | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of padded rows of embedded tokens; without a cache, documents start from zeros.

        Args:
            x: The last T tokens of each row.
            mask: Which tokens are real, and where documents begin.
            cache: The states after earlier tokens, updated in place. With a cache, a row has one sequence.
        """
        packing = Packing(mask.padding_mask[:, -x.size(1) :], mask.query_positions)
        states = cache.states if cache else self.begin(len(x)).states  # M N R U for each layer
        packed = packing.pack(x)
        first, *between, last = self.dropout.masks(packing, packed, len(self.layers) + 1)
        # Reorder the states from rows to packed sequences, longest first.
        before = [state[:, :, packing.rows] for state in states]
        packed, after = self.advance(packed * first, packing.batch_sizes, before, between)
        if cache:
            cache.update(packing.rows, after)
        return packing.unpack(packed * last)

    def named(self, name: str, sequence: str) -> NamedRecurrentStack:
        return NamedRecurrentStack(name, sequence, self, self)

    def begin(self, rows: int) -> RecurrentCache:
        return RecurrentCache([layer.begin(rows) for layer in cast("Iterable[RecurrentLayer]", self.layers)])

    def advance(
        self,
        x: Float[Tensor, "P I"],
        batch_sizes: Int[Tensor, " L"],
        before: Sequence[Float[Tensor, "M N Q U"]],
        dropout: Sequence[Float[Tensor, "#P #D"]],
    ) -> tuple[Float[Tensor, "P D"], list[Float[Tensor, "M N Q U"]]]:
        """Compute the last layer's hidden states for packed sequences, and each layer's state at the end of them.

        Args:
            x: The input vectors.
            batch_sizes: The number of sequences at each step, see `Packing`.
            before: The state of each layer before the sequences.
            dropout: The dropout masks of the inputs of all layers except the first.
        """
        after = []
        for layer, state, mask in zip(self.layers, before, (1, *dropout), strict=True):
            x, last = layer(x * mask, batch_sizes, state)
            after.append(last)
        return x, after
