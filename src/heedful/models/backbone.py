"""The backbones of BERT and GPT: one stack of blocks over token ids, without any head.

B batch, S tokens, T new tokens, D model.
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.embedding import Embedding, segment_embedding
from heedful.nn.kv_cache import Cache
from heedful.nn.masks import AttentionMask
from heedful.nn.positions import POSITIONS
from heedful.nn.stack import Stack


class Backbone(nn.Module, ABC):
    """A Transformer of one stack: token ids in, a hidden state for each of them out.

    Attributes:
        causal: whether a token sees only those before it.
        pooling: which state stands for the whole text, unless the recipe says otherwise.
    """

    causal: ClassVar[bool]
    pooling: ClassVar[str]

    def __init__(self, config: ModelConfig, vocab: int, layers: int) -> None:
        super().__init__()
        self.embedding = Embedding(vocab, config)
        self.segments = segment_embedding(config)
        self.stack = Stack(config, layers, POSITIONS[config.positions](config, causal=self.causal))

    def forward(
        self, tokens: Int[Tensor, "B S"], padding_mask: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B S D"]:
        """The states of padded texts.

        Args:
            tokens: ids.
            padding_mask: True for real tokens, False for padding.
            segments: which part of its text a token belongs to, from 0; a model without segments treats all alike.
        """
        return self.states(tokens, segments, AttentionMask(padding_mask, tokens.size(1), causal=self.causal))

    def states(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"],
        mask: AttentionMask,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """States of tokens under an attention mask; the KV cache of each block holds the tokens before them."""
        return self.stack(self.segments(self.embedding(tokens), segments), mask, caches)


class EncoderOnly(Backbone):
    """The encoder alone (Devlin et al. 2019): every token sees every token."""

    causal = False
    pooling = "first"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__(config, vocab, config.encoder_layers)


class DecoderOnly(Backbone):
    """The decoder alone, which has no memory to look at (Radford et al. 2018): a token sees those before it."""

    causal = True
    pooling = "last"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__(config, vocab, config.decoder_layers)


BACKBONES: dict[str, type[EncoderOnly] | type[DecoderOnly]] = {"encoder": EncoderOnly, "decoder": DecoderOnly}
