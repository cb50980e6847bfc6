"""Convolutional models: the encoder-decoder ConvS2S (Gehring et al. 2017), and backbones of one stack.

B batch, N source tokens, T target tokens, D model.
"""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from heedful.architectures.backbone import Backbone, InputLayerType
from heedful.architectures.convolutional.layers import ConvolutionalDecoder, ConvolutionalStack, ConvolvedSource
from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.architectures.convolutional_decoding import ConvolutionalDecodingState
from heedful.architectures.model import SourceToTarget
from heedful.nn.embedding import InputLayer
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedConvolutionalStack


class ConvolutionalEncoder(Backbone[InputLayerType]):
    """Convolutional text encoder, whose windows extend to both sides of a token."""

    causal = False
    pooling = "max"

    def __init__(self, config: ConvolutionalConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, ConvolutionalStack(config, config.encoder_layers, causal=False))


class ConvolutionalLanguageBackbone(Backbone[InputLayerType]):
    """Convolutional backbone of language models, whose windows end with the current token (Dauphin et al. 2017)."""

    causal = True
    pooling = "last"

    def __init__(self, config: ConvolutionalConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, ConvolutionalStack(config, config.decoder_layers, causal=True))


class ConvolutionalEncoderDecoder(SourceToTarget):
    """Convolutional encoder-decoder, ConvS2S: encodes a source text and predicts the tokens of a target text."""

    has_segments = False

    def __init__(self, config: ConvolutionalConfig, source: int | InputLayer, target_vocab: int) -> None:
        super().__init__()
        self.add_embeddings(config, source, target_vocab)
        self.encoder = ConvolutionalStack(config, config.encoder_layers, causal=False)
        self.decoder = ConvolutionalDecoder(config)
        self.add_output(config, target_vocab)

    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        mask = AttentionMask(target_padding_mask, target.size(1), causal=True)
        return self.decoder(self.target_embedding(target), mask, self.encode(source, source_padding_mask))

    def encode(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> ConvolvedSource:
        x, padding_mask = self.source_embedding.embed(source, padding_mask)
        mask = AttentionMask(padding_mask, x.size(1), causal=False)
        # The decoder also needs the embeddings, so `embed` and `convolve` are called separately.
        embedded = self.encoder.embed(x, mask)
        return self.decoder.source(self.encoder.convolve(embedded, mask), embedded, padding_mask)

    @torch.no_grad()
    def start(
        self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]
    ) -> ConvolutionalDecodingState[ConvolvedSource]:
        cache, select = self.decoder.stack.begin(len(source)), ConvolvedSource.select
        return ConvolutionalDecodingState(self, self.encode(source, padding_mask), cache, len(source), select)

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        alignments = [attention.get_submodule("alignment") for attention in self.decoder.attentions]
        return [
            NamedConvolutionalStack("enc", "src", self.encoder),
            NamedConvolutionalStack("dec", "tgt", self.decoder.stack, alignments),
        ]

    def max_positions(self) -> int | None:
        return self.encoder.positions.limit
