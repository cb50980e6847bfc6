"""Recurrent decoders: without attention, or with the attention of Luong et al. (2015) or Bahdanau et al. (2015).

Each decoder defines one step of a search. Where possible, training computes all target tokens at once, with the same
results.

The state of a layer has M vectors, as in `heedful.architectures.recurrent.layers`.

B batch, T target tokens or queries, N source tokens, P packed tokens, D model, R rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.recurrent.layers import Packing, RecurrentStack
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.nn.attention import masked_softmax
from heedful.nn.masks import AttentionMask


class AdditiveScore(nn.Module):
    """Additive attention score v . tanh(W q + U k), a network with one hidden layer (Bahdanau et al. 2015, A.1.2).

    Luong et al. (2015, formula 8) call it "concat": W and U are the halves of one matrix.
    """

    parameter_kind = "cross-attention"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.score = nn.Linear(size, 1, bias=False)

    def keys(self, states: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self.key(states)

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B N D"]) -> Float[Tensor, "B T N"]:
        # B T 1 D + B 1 N D to B T N D, a hidden layer for each pair, to B T N.
        return self.score(torch.tanh(self.query(queries)[:, :, None] + keys[:, None])).squeeze(-1)


class DotScore(nn.Module):
    """Dot-product attention score q . k, without parameters (Luong et al. 2015, formula 8, "dot")."""

    parameter_kind = "cross-attention"

    def __init__(self, size: int) -> None:
        super().__init__()
        del size

    def keys(self, states: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return states

    def forward(self, queries: Float[Tensor, "B T D"], keys: Float[Tensor, "B N D"]) -> Float[Tensor, "B T N"]:
        return queries @ keys.transpose(1, 2)


class GeneralScore(DotScore):
    """General attention score q . W k: a dot product with projected states (Luong et al. 2015, formula 8)."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.key = nn.Linear(size, size, bias=False)

    def keys(self, states: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self.key(states)


SCORES: dict[str, type[AdditiveScore | DotScore]] = {
    "additive": AdditiveScore,
    "concat": AdditiveScore,
    "dot": DotScore,
    "general": GeneralScore,
}


class EncodedSource(NamedTuple):
    """Encoded source, as a recurrent decoder reads it: the encoder's hidden states."""

    states: Float[Tensor, "R N D"]
    keys: Float[Tensor, "R N D"]  # `states` projected for attention scores
    padding_mask: Bool[Tensor, "R N"]

    def select(self, rows: Int[Tensor, " R2"] | slice) -> "EncodedSource":
        return EncodedSource(self.states[rows], self.keys[rows], self.padding_mask[rows])


class DecoderState(NamedTuple):
    """State of a recurrent decoder after a token."""

    layers: Sequence[Float[Tensor, "M 1 R D"]]
    output: Float[Tensor, "R D"]  # input of the output projection; zeros before the first token

    def select(self, rows: Int[Tensor, " R2"] | slice) -> "DecoderState":
        return DecoderState([state[:, :, rows] for state in self.layers], self.output[rows])


class RecurrentDecoder(nn.Module, ABC):
    """Base class of recurrent decoders: embedded target tokens in, hidden states for the output projection out.

    In decoders with attention, the attention weights pass through the module `alignment`, where the inspector records
    them.
    """

    def __init__(self, config: RecurrentConfig, inputs: int) -> None:
        super().__init__()
        self.stack = RecurrentStack(config, inputs=inputs)
        self.score: Any = None  # set by decoders with attention

    def encoded(self, states: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]) -> EncodedSource:
        """Prepare an encoder's states for all steps, so that keys are projected once, not for each target token."""
        return EncodedSource(states, self.score.keys(states) if self.score else states, padding_mask)

    @abstractmethod
    def step(
        self,
        x: Float[Tensor, "R D"],
        source: EncodedSource,
        state: DecoderState,
        dropout: Sequence[Float[Tensor, "#R #D"]],
    ) -> DecoderState:
        """Compute the state after one more token in each row.

        Args:
            x: The embedded tokens.
            source: The encoded source of each row.
            state: The state before the tokens.
            dropout: The dropout masks of the input, of the inputs of all further layers, and of the output.
        """

    def forward(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"], source: EncodedSource, state: DecoderState
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of all target tokens, one step after another (teacher forcing)."""
        packing, packed, masks = self.packed(x, padding_mask)
        sizes = packing.batch_sizes.tolist()
        source, state = source.select(packing.rows), state.select(packing.rows)
        outputs = []
        for size, tokens, *dropout in zip(sizes, *(part.split(sizes) for part in (packed, *masks)), strict=True):
            # Sequences are sorted by length, so the first `size` of them are those with a token at this step.
            source, state = source.select(slice(size)), state.select(slice(size))
            state = self.step(tokens, source, state, dropout)
            outputs.append(state.output)
        return packing.unpack(torch.cat(outputs))

    def packed(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"]
    ) -> tuple[Packing, Float[Tensor, "P D"], list[Float[Tensor, "#P #D"]]]:
        """Pack rows of one sequence each, and sample dropout masks for the input, between layers and for the output."""
        # `causal` has no effect, because only the positions are used: a stack of one direction is always causal.
        mask = AttentionMask(padding_mask, padding_mask.size(1), causal=False)
        packing = Packing(padding_mask, mask.query_positions)
        packed = packing.pack(x)
        return packing, packed, self.stack.dropout.masks(packing, packed, len(self.stack.layers) + 1)


class PlainDecoder(RecurrentDecoder):
    """Recurrent decoder whose only input from the source is its initial state (Sutskever et al. 2014)."""

    input_feeding = False

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, config.d_model)

    def attend(self, hidden: Float[Tensor, "R T D"], source: EncodedSource) -> Float[Tensor, "R T D"]:
        """Combine hidden states with the source; this decoder, which has no attention, returns them unchanged."""
        del source
        return hidden

    def step(self, x: Tensor, source: EncodedSource, state: DecoderState, dropout: Sequence[Tensor]) -> DecoderState:
        first, *between, last = dropout
        # Input feeding shows the layers what was attended to before, and so what has already been translated.
        x = torch.cat([x * first, state.output], dim=-1) if self.input_feeding else x * first
        # A step is a packed batch whose sequences all have one token.
        hidden, layers = self.stack.advance(x, torch.tensor([len(x)]), state.layers, between)
        return DecoderState(layers, self.attend(hidden[:, None], source)[:, 0] * last)

    def forward(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"], source: EncodedSource, state: DecoderState
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of all target tokens: with input feeding step by step, otherwise at once."""
        if self.input_feeding:
            return super().forward(x, padding_mask, source, state)
        packing, packed, (first, *between, last) = self.packed(x, padding_mask)
        # No step needs the previous output, so one call of torch's kernel computes all steps of a layer.
        before = state.select(packing.rows).layers
        hidden, _ = self.stack.advance(packed * first, packing.batch_sizes, before, between)
        return self.attend(packing.unpack(hidden), source) * packing.unpack(last)


class LuongDecoder(PlainDecoder):
    """Recurrent decoder with attention after its layers: tanh(W [context; hidden]) (Luong et al. 2015, section 3).

    With input feeding, the layers read the previous output together with each token (section 3.3).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.score = SCORES[config.attention](config.d_model)
        self.alignment = nn.Identity()
        self.combine = nn.Linear(2 * config.d_model, config.d_model, bias=False)
        self.input_feeding = config.input_feeding
        if self.input_feeding:
            # Created again, after the other layers, so that a seed gives the same weights in every version of heedful.
            self.stack = RecurrentStack(config, inputs=2 * config.d_model)

    def attend(self, hidden: Float[Tensor, "R T D"], source: EncodedSource) -> Float[Tensor, "R T D"]:
        """Attend to the source with the hidden states as queries, and combine them with the context."""
        weights = self.alignment(masked_softmax(self.score(hidden, source.keys), source.padding_mask))
        return torch.tanh(self.combine(torch.cat([weights @ source.states, hidden], dim=-1)))


class BahdanauDecoder(RecurrentDecoder):
    """Recurrent decoder with attention before its layers; the query is the last state (Bahdanau et al. 2015, A.2).

    The output is tanh(W [hidden; embedding; context]), in place of the paper's maxout.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, 2 * config.d_model)
        self.score = SCORES[config.attention](config.d_model)
        self.alignment = nn.Identity()
        self.combine = nn.Linear(3 * config.d_model, config.d_model)

    def step(self, x: Tensor, source: EncodedSource, state: DecoderState, dropout: Sequence[Tensor]) -> DecoderState:
        first, *between, last = dropout
        query = state.layers[-1][0, 0][:, None]  # R 1 D, the hidden state of the last layer before the token
        weights = self.alignment(masked_softmax(self.score(query, source.keys), source.padding_mask))
        context = (weights @ source.states)[:, 0]  # R D
        inputs = torch.cat([x * first, context], dim=-1)
        hidden, layers = self.stack.advance(inputs, torch.tensor([len(x)]), state.layers, between)
        output = torch.tanh(self.combine(torch.cat([hidden, x * first, context], dim=-1)))
        return DecoderState(layers, output * last)


DECODERS: dict[str, type[Any]] = {  # by `attention`
    "none": PlainDecoder,
    "additive": BahdanauDecoder,
    **dict.fromkeys(("dot", "general", "concat"), LuongDecoder),
}
