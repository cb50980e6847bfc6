"""Recurrent decoders: without attention, with Luong's, with Luong's and input feeding, and with Bahdanau's.

Each defines one step; what is computed at all target tokens at once, where that is possible, equals the steps.

B batch, T target tokens, N source tokens, D model, L layers, R rows, U units.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.architectures.recurrent.layers import RecurrentStack
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.nn.attention_scores import SCORES, attention_weights
from heedful.nn.masks import AttentionMask
from heedful.nn.packing import Packing


@dataclass(frozen=True)
class EncodedSource:
    """Source as a recurrent decoder sees it: the states of its encoder.

    Attributes:
        states: the hidden states of the source tokens.
        keys: their projection for attention scores.
        padding_mask: True for real tokens.
    """

    states: Float[Tensor, "R N D"]
    keys: Float[Tensor, "R N D"]
    padding_mask: Bool[Tensor, "R N"]

    def select(self, rows: Int[Tensor, " R2"] | slice) -> "EncodedSource":
        """Keep, reorder or repeat rows."""
        return EncodedSource(self.states[rows], self.keys[rows], self.padding_mask[rows])


@dataclass(frozen=True)
class DecoderState:
    """State of a recurrent decoder after a token.

    Attributes:
        layers: the state of each layer.
        output: the last hidden state that was given out; zeros before the first token.
    """

    layers: Sequence[Float[Tensor, "M 1 R D"]]
    output: Float[Tensor, "R D"]

    def select(self, rows: Int[Tensor, " R2"] | slice) -> "DecoderState":
        """Keep, reorder or repeat rows."""
        return DecoderState([state[:, :, rows] for state in self.layers], self.output[rows])


class RecurrentDecoder(nn.Module, ABC):
    """Base class of recurrent decoders: embedded target tokens in, hidden states for the output projection out.

    Those with attention pass its weights through a module `alignment`, where the inspector records them.
    """

    def __init__(self, config: RecurrentConfig, inputs: int) -> None:
        super().__init__()
        self.stack = RecurrentStack(config, inputs=inputs)

    def encoded(self, states: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]) -> EncodedSource:
        """Prepare the states of an encoder for all steps."""
        return EncodedSource(states, states, padding_mask)

    @abstractmethod
    def step(
        self,
        x: Float[Tensor, "R D"],
        source: EncodedSource,
        state: DecoderState,
        dropout: Sequence[Float[Tensor, "#R #D"]],
    ) -> DecoderState:
        """Read one token in each row.

        Args:
            x: the embedded tokens.
            source: the encoded source of each row.
            state: the state before the tokens.
            dropout: the dropout masks of the input, of the inputs of all further layers, and of the output.

        Returns:
            The state after the tokens; its `output` is what the output projection takes.
        """

    def forward(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"], source: EncodedSource, state: DecoderState
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of all target tokens, one step after another (teacher forcing)."""
        packing = packing_of(padding_mask)
        packed = packing.pack(x)
        masks = self.masks(packing, packed)
        sizes = packing.batch_sizes.tolist()
        source, state = source.select(packing.rows), state.select(packing.rows)
        outputs = []
        for size, tokens, *dropout in zip(sizes, *(part.split(sizes) for part in (packed, *masks)), strict=True):
            going = slice(size)  # the longest sequences are the first
            source, state = source.select(going), state.select(going)
            state = self.step(tokens, source, state, dropout)
            outputs.append(state.output)
        return packing.unpack(torch.cat(outputs))

    def masks(self, packing: Packing, packed: Float[Tensor, "P D"]) -> list[Float[Tensor, "#P #D"]]:
        """Draw the dropout masks of all steps: of the input, between layers, and of the output."""
        return self.stack.dropout(packing, packed, len(self.stack.layers) + 1)

    def read(
        self, x: Float[Tensor, "R D2"], state: DecoderState, between: Sequence[Float[Tensor, "#R #D"]]
    ) -> tuple[Float[Tensor, "R D"], list[Float[Tensor, "M 1 R D"]]]:
        """Read one vector in each row by the recurrent layers; return the hidden states and the layers' states."""
        return self.stack.advance(x, torch.tensor([len(x)]), state.layers, between)


class PlainDecoder(RecurrentDecoder):
    """Recurrent decoder that sees the source through its first state only (Sutskever et al. 2014)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, config.d_model)

    def step(self, x: Tensor, source: EncodedSource, state: DecoderState, dropout: Sequence[Tensor]) -> DecoderState:
        """Read one token in each row."""
        first, *between, last = dropout
        hidden, layers = self.read(x * first, state, between)
        return DecoderState(layers, self.attend(hidden[:, None], source)[:, 0] * last)

    def attend(self, hidden: Float[Tensor, "R T D"], source: EncodedSource) -> Float[Tensor, "R T D"]:
        """Return the hidden states as they are: there is no attention."""
        del source
        return hidden

    def forward(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"], source: EncodedSource, state: DecoderState
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of all target tokens at once: no step needs the output of the one before."""
        packing = packing_of(padding_mask)
        packed = packing.pack(x)
        first, *between, last = self.masks(packing, packed)
        before = state.select(packing.rows).layers
        hidden, _ = self.stack.advance(packed * first, packing.batch_sizes, before, between)
        return self.attend(packing.unpack(hidden), source) * packing.unpack(last)


class LuongDecoder(PlainDecoder):
    """Recurrent decoder with attention after its layers: tanh(W [context; hidden]) (Luong et al. 2015, section 3)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.score = SCORES[config.attention](config.d_model)
        self.alignment = nn.Identity()
        self.combine = nn.Linear(2 * config.d_model, config.d_model, bias=False)

    def encoded(self, states: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]) -> EncodedSource:
        """Project the states of an encoder for all steps."""
        return EncodedSource(states, self.score.keys(states), padding_mask)

    def attend(self, hidden: Float[Tensor, "R T D"], source: EncodedSource) -> Float[Tensor, "R T D"]:
        """Attend to the source with the hidden states as queries, and combine these with what is found."""
        weights = self.alignment(attention_weights(self.score(hidden, source.keys), source.padding_mask))
        return torch.tanh(self.combine(torch.cat([weights @ source.states, hidden], dim=-1)))


class InputFeedingDecoder(LuongDecoder):
    """Luong's decoder whose layers read the last output beside each token (Luong et al. 2015, section 3.3)."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.stack = RecurrentStack(config, inputs=2 * config.d_model)

    def step(self, x: Tensor, source: EncodedSource, state: DecoderState, dropout: Sequence[Tensor]) -> DecoderState:
        """Read one token in each row, beside the last output."""
        first, *between, last = dropout
        hidden, layers = self.read(torch.cat([x * first, state.output], dim=-1), state, between)
        return DecoderState(layers, self.attend(hidden[:, None], source)[:, 0] * last)

    forward = RecurrentDecoder.forward


class BahdanauDecoder(RecurrentDecoder):
    """Recurrent decoder with attention before its layers, by its last state (Bahdanau et al. 2015, appendix A.2).

    The output is tanh(W [hidden; embedding; context]), in place of the paper's maxout.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config, 2 * config.d_model)
        self.score = SCORES[config.attention](config.d_model)
        self.alignment = nn.Identity()
        self.combine = nn.Linear(3 * config.d_model, config.d_model)

    def encoded(self, states: Float[Tensor, "B N D"], padding_mask: Bool[Tensor, "B N"]) -> EncodedSource:
        """Project the states of an encoder for all steps."""
        return EncodedSource(states, self.score.keys(states), padding_mask)

    def step(self, x: Tensor, source: EncodedSource, state: DecoderState, dropout: Sequence[Tensor]) -> DecoderState:
        """Attend to the source with the last hidden state, then read a token and what was found."""
        first, *between, last = dropout
        query = state.layers[-1][0, 0][:, None]
        weights = self.alignment(attention_weights(self.score(query, source.keys), source.padding_mask))
        context = (weights @ source.states)[:, 0]
        hidden, layers = self.read(torch.cat([x * first, context], dim=-1), state, between)
        output = torch.tanh(self.combine(torch.cat([hidden, x * first, context], dim=-1)))
        return DecoderState(layers, output * last)


def packing_of(padding_mask: Bool[Tensor, "B T"]) -> Packing:
    """Pack rows of one sequence each."""
    mask = AttentionMask(padding_mask, padding_mask.size(1), causal=False)
    return Packing(padding_mask, mask.query_positions)


def build_decoder(config: RecurrentConfig) -> RecurrentDecoder:
    """Build the decoder that a configuration's attention and input feeding ask for."""
    return DECODERS[config.attention, config.input_feeding](config)


DECODERS: dict[tuple[str, bool], type[Any]] = {
    ("none", False): PlainDecoder,
    ("additive", False): BahdanauDecoder,
    **{(luong, False): LuongDecoder for luong in ("dot", "general", "concat")},
    **{(luong, True): InputFeedingDecoder for luong in ("dot", "general", "concat")},
}
