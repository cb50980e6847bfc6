"""Encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017, figure 1).

B batch, R rows of a search, N source tokens or other inputs of F features, T target tokens, D model, V vocabulary.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from heedful.architectures.model import Model, Names
from heedful.architectures.text_encoder_decoder import TextEncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.nn.masks import AttentionMask, BeamLanes
from heedful.nn.named_stacks import NamedStack
from heedful.nn.stack import Decoder, Memory, Stack
from heedful.registry import POSITIONS
from heedful.text.tokenizer import BOS, EOS

SIDES: dict[str, Names] = {
    "encoder": {"backbone.embedding.": "source_embedding.", "backbone.stack.": "encoder."},
    "decoder": {"backbone.embedding.": "target_embedding.", "backbone.stack.": "decoder.", "output.": "output."},
}


class EncoderDecoder(TextEncoderDecoder[ModelConfig]):
    """Encoder-decoder Transformer: encodes a source text and predicts the tokens of a target text."""

    Config = ModelConfig  # of a class that extends this one, unless it names its own

    def add_layers(self, config: ModelConfig) -> None:
        """Create the encoder and the decoder."""
        positions = POSITIONS[config.positions]
        self.source_eos = config.source_eos
        self.encoder = Stack(config, config.encoder_layers, positions(config, causal=False))
        own = replace(config, max_positions=config.max_target_positions or config.max_positions)
        self.decoder = Decoder(config, positions(own, causal=True))

    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """Compute the decoder's last hidden states, for a loss that is fused with the output projection."""
        return self.decoder(
            self.target_embedding(target), target_padding_mask, self.encode(source, source_padding_mask)
        )

    def encode(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> Memory:
        """Encode the source once, for any number of decoding steps."""
        if not self.source_eos:
            padding_mask = padding_mask & (source != EOS)
        x, padding_mask = self.source_embedding.embed(source, padding_mask)
        return Memory(self.encoder(x, AttentionMask(padding_mask, x.size(1), causal=False)), padding_mask)

    @torch.no_grad()
    def start(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> "EncoderDecoderState":
        """Begin to decode: encode the source, and return the decoding state with one row for each sentence."""
        return EncoderDecoderState(self, self.encode(source, padding_mask))

    def named_stacks(self) -> list[NamedStack]:
        """The encoder and the decoder."""
        return [NamedStack("enc", "src", self.encoder), NamedStack("dec", "tgt", self.decoder)]

    def warm_start_names(self, start: Model) -> Names:
        """Another encoder-decoder as it is; a BERT becomes the encoder, a GPT the decoder (Rothe et al. 2020)."""
        return SIDES[start.side] if start.side else super().warm_start_names(start)

    def max_positions(self) -> int | None:
        """The size of the encoder's table of learned positions; None for other position schemes."""
        return self.encoder.positions.limit

    def max_target_positions(self) -> int | None:
        """The size of the decoder's table of learned positions; None for other position schemes."""
        return self.decoder.positions.limit


class EncoderDecoderState:
    """Decoding state of an encoder-decoder, without gradients: the cache of its decoder, and beam lanes.

    The hypotheses of a sentence are side by side in the token dimension, where the decoder has the tokens of a target
    in training, and `BeamLanes` masks them from each other. So the cache has a row for each sentence, not for each
    hypothesis, and its columns are those of the mask.
    """

    def __init__(self, model: EncoderDecoder, memory: Memory) -> None:
        self.model = model
        self.sentences, device = len(memory.states), memory.states.device
        self.begin = torch.full((self.sentences,), BOS, device=device)
        self.lanes = BeamLanes(self.sentences, device)
        self.cache = model.decoder.begin(memory)

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Feed one token to each row; return the logits of the next token."""
        x = self.model.target_embedding(tokens.unflatten(0, (-1, self.lanes.width)))
        return self.model.output(self.model.decoder.step(x, self.lanes, self.cache).flatten(0, 1))

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the decoding state.

        Keys and values are copied only if a sentence leaves, or if no lane attends to half of them any more.
        """
        kept = self.lanes.select(rows)
        if not torch.equal(kept, torch.arange(self.sentences, device=kept.device)):
            self.cache.select(kept)
            self.sentences = len(kept)
        columns = self.lanes.prune()
        if columns is not None:
            self.cache.prune(columns)
