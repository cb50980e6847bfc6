"""Recurrent models: encoder-decoders (Sutskever et al. 2014; Bahdanau et al. 2015), and backbones of one stack.

B batch, R rows of a search, N source tokens, T target tokens, D model, V vocabulary.
"""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone, InputLayerType
from heedful.architectures.model import SourceToTarget
from heedful.architectures.recurrent.decoder import DECODERS, DecoderState, EncodedSource
from heedful.architectures.recurrent.layers import RecurrentStack
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.nn.embedding import InputLayer
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedRecurrentStack
from heedful.text.tokenizer import BOS


class RecurrentEncoder(Backbone[InputLayerType]):
    """Recurrent text encoder, by default in both directions (Schuster & Paliwal 1997)."""

    causal = False
    pooling = "max"

    def __init__(self, config: RecurrentConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, RecurrentStack(config, directions=1 + config.bidirectional))


class RecurrentLanguageBackbone(Backbone[InputLayerType]):
    """Recurrent backbone of language models, from left to right: a hidden state does not depend on later tokens."""

    causal = True
    pooling = "last"

    def __init__(self, config: RecurrentConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, RecurrentStack(config))


class Bridge(nn.Module):
    """Bridge from the final state of an encoder layer to the initial state of a decoder layer: a linear map per vector.

    Hidden states pass through tanh (Bahdanau et al. 2015, appendix A.2.2), but the memory cells of an LSTM do not.
    """

    parameter_kind = "bridge"

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        vectors = 2 if config.cell == "lstm" else 1
        self.maps = nn.ModuleList(nn.Linear(config.d_model, config.d_model) for _ in range(vectors))

    def forward(self, state: Float[Tensor, "M N B U"]) -> Float[Tensor, "M 1 B D"]:
        # Concatenate the directions of each vector, N B U to B NU, which is B D.
        hidden, *cell = (
            linear(vector.transpose(0, 1).flatten(1)) for linear, vector in zip(self.maps, state, strict=True)
        )
        return torch.stack([torch.tanh(hidden), *cell])[:, None]


class RecurrentEncoderDecoder(SourceToTarget):
    """Recurrent encoder-decoder: encodes a source text and predicts the tokens of a target text."""

    has_segments = False

    def __init__(self, config: RecurrentConfig, source: int | InputLayer, target_vocab: int) -> None:
        super().__init__()
        self.add_embeddings(config, source, target_vocab)
        self.encoder = RecurrentStack(config, directions=1 + config.bidirectional)
        # The decoder starts from the encoder's final states, mapped because the two may differ in their directions.
        self.bridges = nn.ModuleList(Bridge(config) for _ in range(config.layers))
        self.decoder = DECODERS[config.attention](config)
        self.add_output(config, target_vocab)

    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        # The target is always embedded first, because the order of summing a tied matrix's gradients affects rounding.
        x = self.target_embedding(target)
        return self.decoder(x, target_padding_mask, *self.encode(source, source_padding_mask))

    def encode(
        self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]
    ) -> tuple[EncodedSource, DecoderState]:
        x, padding_mask = self.source_embedding.embed(source, padding_mask)
        last = self.encoder.begin(len(x))  # the encoder leaves its last states in this cache
        states = self.encoder(x, AttentionMask(padding_mask, x.size(1), causal=False), last)
        # Padding is not processed, so these are the states after the last real tokens.
        first = [bridge(state) for bridge, state in zip(self.bridges, last.states, strict=True)]
        return self.decoder.encoded(states, padding_mask), DecoderState(first, torch.zeros_like(states[:, 0]))

    @torch.no_grad()
    def start(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> "RecurrentDecodingState":
        return RecurrentDecodingState(self, *self.encode(source, padding_mask))

    def recurrent_stacks(self) -> list[NamedRecurrentStack]:
        decoder, alignment = self.decoder, dict(self.decoder.named_children()).get("alignment")
        return [
            NamedRecurrentStack("enc", "src", self.encoder, self.encoder),
            NamedRecurrentStack("dec", "tgt", decoder.stack, decoder, list(self.bridges), alignment),
        ]


class RecurrentDecodingState:
    """Decoding state of a recurrent encoder-decoder: the states of its decoder and the source of each row."""

    def __init__(self, model: RecurrentEncoderDecoder, source: EncodedSource, state: DecoderState) -> None:
        self.model, self.source, self.state = model, source, state
        self.begin = torch.full((len(source.states),), BOS, device=source.states.device)
        self.sentences = torch.arange(len(source.states), device=source.states.device)  # the sentence of each row
        self.dropout = [state.output.new_ones(1, 1)] * (len(state.layers) + 1)  # nothing is dropped

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        x = self.model.target_embedding(tokens[:, None])[:, 0]
        self.state = self.model.decoder.step(x, self.source, self.state, self.dropout)
        return self.model.output(self.state.output)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.state = self.state.select(rows)
        # The source is copied only if a row changes its sentence: copying it at every step would be slow.
        sentences = self.sentences[rows]
        if not torch.equal(sentences, self.sentences):
            self.source, self.sentences = self.source.select(rows), sentences
