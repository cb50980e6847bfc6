"""Backbones of BERT and GPT: one stack of blocks over token ids, without any head.

B batch, S tokens, T new tokens, D model.
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.models.model import OUTPUT_ROWS, Model, Names
from heedful.nn.embedding import Embedding, segment_embedding
from heedful.nn.kv_cache import Cache
from heedful.nn.masks import AttentionMask
from heedful.nn.positions import POSITIONS
from heedful.nn.stack import NamedStack, Stack


class Backbone(nn.Module, ABC):
    """Base class of backbones, Transformers of one stack: token ids in, a hidden state for each token out.

    Attributes:
        causal: True if a token attends to earlier tokens only.
        pooling: the pooling that stands for the whole text, unless the recipe names another.
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
        """Compute the hidden states of padded texts.

        Args:
            tokens: token ids.
            padding_mask: True for real tokens, False for padding.
            segments: the segment of each token, from 0; a model without segments ignores it.
        """
        return self.states(tokens, segments, AttentionMask(padding_mask, tokens.size(1), causal=self.causal))

    def states(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"],
        mask: AttentionMask,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Compute hidden states of tokens under an attention mask; the KV cache of each block holds earlier tokens."""
        return self.stack(self.segments(self.embedding(tokens), segments), mask, caches)


class EncoderOnly(Backbone):
    """Encoder-only backbone, as in BERT (Devlin et al. 2019): every token attends to every token."""

    causal = False
    pooling = "first"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__(config, vocab, config.encoder_layers)


class DecoderOnly(Backbone):
    """Decoder-only backbone, as in GPT (Radford et al. 2018): a token attends to earlier tokens only."""

    causal = True
    pooling = "last"

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__(config, vocab, config.decoder_layers)


class BackboneModel(Model):
    """A backbone and whatever stands on it: BERT, GPT, and models with task heads."""

    backbone: Backbone

    @property
    def side(self) -> str:
        """The half of an encoder-decoder that the backbone can become: "decoder" for a GPT, "encoder" for a BERT."""
        return "decoder" if self.backbone.causal else "encoder"

    @property
    def line(self) -> str:
        """The text of the outputs: "tgt" for a GPT, which writes, "src" for a BERT, which reads."""
        return "tgt" if self.backbone.causal else "src"

    def named_stacks(self) -> list[NamedStack]:
        """The one stack of the backbone."""
        return [NamedStack("dec" if self.backbone.causal else "enc", self.line, self.backbone.stack)]

    def embedding_of(self, line: str) -> Embedding:
        """The embeddings of the one text."""
        del line
        return self.backbone.embedding

    def token_rows(self) -> Names:
        """The embeddings, and the output where it is over the vocabulary."""
        return {"backbone.embedding.weight": "source"} | (OUTPUT_ROWS if self.predicts_tokens else {})

    def warm_start_names(self, start: Model) -> Names:
        """The same kind of model as it is; of another one its backbone and, where there is one, its pooler."""
        return super().warm_start_names(start) or BACKBONE_NAMES


BACKBONE_NAMES: Names = {"backbone.": "backbone.", "next_sentence.pooler.": "pooler.", "pooler.": "pooler."}
BACKBONES: dict[str, type[EncoderOnly] | type[DecoderOnly]] = {"encoder": EncoderOnly, "decoder": DecoderOnly}
