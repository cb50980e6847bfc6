"""The trunks of the Transformer's two children: BERT's sees the whole text, GPT's what was before.

B batch, S tokens, T new tokens, D model.
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.attention import Cache
from heedful.nn.embedding import Embedding, segment_embedding
from heedful.nn.masks import Sight
from heedful.nn.positions import POSITIONS
from heedful.nn.stack import Stack


class Trunk(nn.Module, ABC):
    """Tokens in, a state for each of them out.

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
        self, tokens: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B S D"]:
        """The states of padded texts.

        Args:
            tokens: ids.
            keep: True for real tokens, False for padding.
            segments: which part of its text a token belongs to, from 0; a model without segments treats all alike.
        """
        return self.states(tokens, segments, Sight(keep, tokens.size(1), causal=self.causal))

    def states(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"],
        sight: Sight,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The states of tokens that see what `sight` lets them see, in the caches what was before them."""
        return self.stack(self.segments(self.embedding(tokens), segments), sight, caches)


class EncoderOnly(Trunk):
    """The encoder alone (Devlin et al. 2019): every token sees every token."""

    causal = False
    pooling = "first"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__(config, vocab, config.encoder_layers)


class DecoderOnly(Trunk):
    """The decoder alone, which has no memory to look at (Radford et al. 2018): a token sees those before it."""

    causal = True
    pooling = "last"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__(config, vocab, config.decoder_layers)


FAMILIES: dict[str, type[EncoderOnly] | type[DecoderOnly]] = {"encoder": EncoderOnly, "decoder": DecoderOnly}
