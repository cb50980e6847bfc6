"""ByteNet: the encoder-decoder (Kalchbrenner et al. 2016), and backbones of one stack.

B batch, N source tokens, T target tokens, W columns of the encoder, D model.
"""

from operator import getitem

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from heedful.architectures.backbone import Backbone, InputLayerType
from heedful.architectures.bytenet.layers import ByteNetDecoder, ByteNetStack, Unfolding
from heedful.architectures.bytenet.settings import ByteNetConfig
from heedful.architectures.convolutional_decoding import ConvolutionalDecodingState
from heedful.architectures.model import SourceToTarget
from heedful.nn.embedding import InputLayer
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import NamedConvolutionalStack


class ByteNetEncoder(Backbone[InputLayerType]):
    """Text encoder: the encoder of a ByteNet, with one column for each token."""

    causal = False
    pooling = "max"

    def __init__(self, config: ByteNetConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, ByteNetStack(config, config.encoder_layers, causal=False))


class ByteNetLanguageBackbone(Backbone[InputLayerType]):
    """Backbone of language models: the decoder of a ByteNet, without an encoder (section 4)."""

    causal = True
    pooling = "last"

    def __init__(self, config: ByteNetConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, ByteNetStack(config, config.decoder_layers, causal=True))


class ByteNetEncoderDecoder(SourceToTarget):
    """ByteNet: encodes a source text in columns, over which a decoder predicts the tokens of a target text."""

    has_segments = False

    def __init__(self, config: ByteNetConfig, source: int | InputLayer, target_vocab: int) -> None:
        super().__init__()
        self.add_embeddings(config, source, target_vocab)
        self.unfolding = Unfolding(config)
        self.encoder = ByteNetStack(config, config.encoder_layers, causal=False)
        self.decoder = ByteNetDecoder(config)
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

    def encode(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B W D"]:
        """Compute the columns of the encoder. Those that a row does not have, and the last column, are zeros."""
        x, is_column = self.unfolding(*self.source_embedding.embed(source, padding_mask))
        columns = self.encoder(x, AttentionMask(is_column, x.size(1), causal=False))
        return F.pad(columns, (0, 0, 0, 1))

    @torch.no_grad()
    def start(
        self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]
    ) -> ConvolutionalDecodingState[Tensor]:
        cache = self.decoder.stack.begin(len(source))
        return ConvolutionalDecodingState(self, self.encode(source, padding_mask), cache, len(source), getitem)

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        return [self.encoder.named("enc", "src"), self.decoder.stack.named("dec", "tgt")]
