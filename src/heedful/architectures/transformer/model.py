"""Transformers: the encoder-decoder of "Attention Is All You Need" (Vaswani et al. 2017, figure 1), BERT and GPT.

B batch, R rows of a search, N source tokens or other inputs of F features, T target tokens, D model, V vocabulary.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from heedful.architectures.backbone import Backbone, InputLayerType
from heedful.architectures.model import Model, Names, SourceToTarget
from heedful.architectures.parameters import count_without_building
from heedful.architectures.transformer.layers import Decoder, EncoderOutput, Stack
from heedful.config.schema import ModelConfig
from heedful.nn.embedding import InputLayer
from heedful.nn.masks import AttentionMask, BeamLanes
from heedful.nn.named_stacks import NamedStack
from heedful.registry import POSITIONS
from heedful.text.tokenizer import BOS, EOS

# Weight names of a BERT (encoder) or GPT (decoder), and of the same weights in an encoder-decoder.
SIDES: dict[str, Names] = {
    "encoder": {"backbone.embedding.": "source_embedding.", "backbone.stack.": "encoder."},
    "decoder": {"backbone.embedding.": "target_embedding.", "backbone.stack.": "decoder.", "output.": "output."},
}


class EncoderOnly(Backbone[InputLayerType]):
    """Encoder-only backbone, as in BERT (Devlin et al. 2019): every token attends to every token."""

    causal = False
    pooling = "first"
    Config = ModelConfig  # inherited by custom subclasses

    def __init__(self, config: ModelConfig, embedding: InputLayerType) -> None:
        positions = POSITIONS[config.positions](config, causal=False)
        super().__init__(config, embedding, Stack(config, config.encoder_layers, positions))


class DecoderOnly(Backbone[InputLayerType]):
    """Decoder-only backbone, as in GPT (Radford et al. 2018): a token attends only to itself and earlier tokens."""

    causal = True
    pooling = "last"
    Config = ModelConfig

    def __init__(self, config: ModelConfig, embedding: InputLayerType) -> None:
        positions = POSITIONS[config.positions](config, causal=True)
        super().__init__(config, embedding, Stack(config, config.decoder_layers, positions))


BACKBONES: dict[str, type[Backbone[Any]]] = {"encoder": EncoderOnly, "decoder": DecoderOnly}


class EncoderDecoder(SourceToTarget):
    """Encoder-decoder Transformer: encodes a source text and predicts the tokens of a target text (section 3.1).

    Args:
        config: The settings of the model.
        source: The size of the source vocabulary, or the input layer of another source, such as an image.
        target_vocab: The size of the target vocabulary.
    """

    has_segments = False
    Config = ModelConfig

    def __init__(self, config: ModelConfig, source: int | InputLayer, target_vocab: int) -> None:
        super().__init__()
        self.add_embeddings(config, source, target_vocab)
        self.source_eos = config.source_eos
        positions = POSITIONS[config.positions]
        self.encoder = Stack(config, config.encoder_layers, positions(config, causal=False))
        # If outputs are shorter than inputs, as in Whisper, the decoder has a smaller table of learned positions.
        target_config = replace(config, max_positions=config.max_target_positions or config.max_positions)
        self.decoder = Decoder(config, positions(target_config, causal=True))
        self.add_output(config, target_vocab)

    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states of the decoder, for a loss that is fused with the output projection."""
        # The target is always embedded first, because the order of summing a tied matrix's gradients affects rounding.
        x = self.target_embedding(target)
        return self.decoder(x, target_padding_mask, self.encode(source, source_padding_mask))

    def encode(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> EncoderOutput:
        # OpenNMT models were trained without <eos> at the end of the source.
        if not self.source_eos:
            padding_mask = padding_mask & (source != EOS)
        # B N (tokens) or B N F (frames, pixels) to B S D; S is smaller than N after a convolution with a stride.
        x, padding_mask = self.source_embedding.embed(source, padding_mask)
        return EncoderOutput(self.encoder(x, AttentionMask(padding_mask, x.size(1), causal=False)), padding_mask)

    @torch.no_grad()
    def start(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> "EncoderDecoderState":
        return EncoderDecoderState(self, self.encode(source, padding_mask))

    def named_stacks(self) -> list[NamedStack]:
        return [NamedStack("enc", "src", self.encoder), NamedStack("dec", "tgt", self.decoder)]

    def warm_start_names(self, start: Model) -> Names:
        """Map all weights of an encoder-decoder; a BERT becomes the encoder, a GPT the decoder (Rothe et al. 2020)."""
        return SIDES[start.side] if start.side else super().warm_start_names(start)

    def max_positions(self) -> int | None:
        return self.encoder.positions.limit

    def max_target_positions(self) -> int | None:
        return self.decoder.positions.limit


class EncoderDecoderState:
    """Decoding state of an encoder-decoder, without gradients: the cache of its decoder, and beam lanes.

    The hypotheses of a sentence are side by side in the token dimension, and `BeamLanes` masks them from each other.
    Therefore the cache has a row for each sentence, not for each hypothesis, and the same columns as the mask.
    """

    def __init__(self, model: EncoderDecoder, encoded: EncoderOutput) -> None:
        self.model = model
        self.sentences, device = len(encoded.states), encoded.states.device
        self.begin = torch.full((self.sentences,), BOS, device=device)
        self.lanes = BeamLanes(self.sentences, device)
        self.cache = model.decoder.begin(encoded)

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        # (sentences x lanes,) to (sentences, lanes): the lanes take the place of target tokens in training.
        x = self.model.target_embedding(tokens.unflatten(0, (-1, self.lanes.width)))
        return self.model.output(self.model.decoder.step(x, self.lanes, self.cache).flatten(0, 1))

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the decoding state.

        Keys and values are copied in two cases: if the sentences or their order change, and if at least half of the
        tokens of every sentence can be dropped because no lane attends to them any more.
        """
        sentences = self.lanes.select(rows)
        if not torch.equal(sentences, torch.arange(self.sentences, device=sentences.device)):
            self.cache.select(sentences)
            self.sentences = len(sentences)
        columns = self.lanes.prune()
        if columns is not None:
            self.cache.prune(columns)


@dataclass(frozen=True)
class Convention:
    """Convention for counting the parameters in Table 3 of Vaswani et al. (2017), where no vocabulary size is given."""

    name: str
    vocab: int
    attention_bias: bool
    further_rows: int = 0  # rows of d_model in addition to those of the vocabulary

    def count(self, config: ModelConfig) -> int:
        config = replace(config, attention_bias=self.attention_bias)
        counts = count_without_building(lambda: EncoderDecoder(config, self.vocab, self.vocab))
        return counts.total + self.further_rows * config.d_model


# The first public tensor2tensor (June 2017) has 40,960 rows for `vocab.bpe.32000`, biases on every projection, and
# adds to every input of the encoder the vector of the target language, from a table of 32.
CONVENTIONS = (
    Convention("the paper's text", vocab=37_000, attention_bias=False),
    Convention("the authors' first code", vocab=40_960, attention_bias=True, further_rows=32),
)
