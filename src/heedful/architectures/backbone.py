"""Backbones: an input layer and one stack, without any head; of BERT and GPT, and of other architectures.

B batch, N inputs, S positions, T new tokens, D model, H size of the hidden states, D in most backbones.
"""

from abc import ABC
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.architectures import model_class
from heedful.architectures.model import OUTPUT_ROWS, Model, Names, SourceToTarget
from heedful.config.schema import ModelConfig, TextModelConfig
from heedful.nn.embedding import Embedding, InputLayer, segment_embedding
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import InspectableStack, NamedConvolutionalStack, NamedRecurrentStack, NamedStack
from heedful.nn.stack import Stack
from heedful.registry import POSITIONS

InputLayerType = TypeVar("InputLayerType", bound=InputLayer)
N = TypeVar("N", NamedStack, NamedRecurrentStack, NamedConvolutionalStack)


@runtime_checkable
class StackState(Protocol):
    """Interface of the cache of a stack: what it remembers of the tokens of each row during generation."""

    def select(self, rows: Int[Tensor, " R2"], /) -> None:
        """Keep, reorder or repeat rows."""
        ...


@runtime_checkable
class SequenceStack(Protocol):
    """Interface of a stack of layers of any architecture, which computes a hidden state for each embedded token."""

    def __call__(self, x: Tensor, mask: AttentionMask, cache: Any = None) -> Tensor:
        """Compute hidden states (B T D) of embedded tokens (B T D); the cache holds earlier tokens."""
        ...


@runtime_checkable
class GeneratingStack(SequenceStack, Protocol):
    """Interface of a stack of causal layers, which remembers what it has seen of earlier tokens."""

    def begin(self, rows: int) -> StackState:
        """Create the cache of rows without any token."""
        ...


class Backbone(nn.Module, ABC, Generic[InputLayerType]):
    """Base class of backbones, models of one stack: token ids in, a hidden state for each token out.

    Other inputs than token ids come through another input layer.

    Attributes:
        causal: True if a token attends to earlier tokens only.
        pooling: the pooling that stands for the whole text, unless the recipe names another.
    """

    causal: ClassVar[bool]
    pooling: ClassVar[str]

    def __init__(self, config: TextModelConfig, embedding: InputLayerType, stack: SequenceStack) -> None:
        super().__init__()
        self.embedding = embedding
        self.segments = segment_embedding(config)
        self.stack = stack

    def forward(
        self,
        inputs: Shaped[Tensor, "B N *F"],
        padding_mask: Bool[Tensor, "B N"],
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B S D"]:
        """Compute the hidden states of padded rows; arguments as for `encode`."""
        return self.encode(inputs, padding_mask, segments)[0]

    def encode(
        self,
        inputs: Shaped[Tensor, "B N *F"],
        padding_mask: Bool[Tensor, "B N"],
        segments: Int[Tensor, "B S"] | None = None,
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Compute the hidden states of padded rows, and their padding mask.

        Args:
            inputs: token ids, or whatever the input layer takes.
            padding_mask: True for real inputs, False for padding.
            segments: the segment of each position, from 0; a model without segments ignores it. None: all 0.
        """
        return self.encode_vectors(*self.embedding.embed(inputs, padding_mask), segments)

    def encode_vectors(
        self, x: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"] | None = None
    ) -> tuple[Float[Tensor, "B S H"], Bool[Tensor, "B S"]]:
        """Compute the hidden states of the vectors of an input layer, and their padding mask."""
        x = self.segments(x, torch.zeros_like(padding_mask, dtype=torch.long) if segments is None else segments)
        return self.stack(x, AttentionMask(padding_mask, x.size(1), causal=self.causal)), padding_mask


class EncoderOnly(Backbone[InputLayerType]):
    """Encoder-only backbone, as in BERT (Devlin et al. 2019): every token attends to every token."""

    causal = False
    pooling = "first"
    Config = ModelConfig  # of a class that extends this one, unless it names its own

    def __init__(self, config: ModelConfig, embedding: InputLayerType) -> None:
        positions = POSITIONS[config.positions](config, causal=False)
        super().__init__(config, embedding, Stack(config, config.encoder_layers, positions))


class DecoderOnly(Backbone[InputLayerType]):
    """Decoder-only backbone, as in GPT (Radford et al. 2018): a token attends to earlier tokens only."""

    causal = True
    pooling = "last"
    Config = ModelConfig

    def __init__(self, config: ModelConfig, embedding: InputLayerType) -> None:
        positions = POSITIONS[config.positions](config, causal=True)
        super().__init__(config, embedding, Stack(config, config.decoder_layers, positions))


def text_backbone(config: TextModelConfig, vocab: int) -> Backbone[Embedding]:
    """Build the backbone of a configuration with embeddings of token ids as its input layer."""
    return model_class(config)(config, Embedding(vocab, config))


class BackboneModel(Model):
    """A backbone and whatever stands on it: BERT, GPT, and models with task heads."""

    backbone: Backbone[Any]

    @property
    def side(self) -> str:
        """The half of an encoder-decoder that the backbone can become: "decoder" for a GPT, "encoder" for a BERT."""
        return "decoder" if self.backbone.causal else "encoder"

    @property
    def line(self) -> str:
        """The text of the outputs: "tgt" for a GPT, which writes, "src" for a BERT, which reads."""
        return "tgt" if self.backbone.causal else "src"

    def named_stacks(self) -> list[NamedStack]:
        """The one stack of the backbone, if it is that of a Transformer."""
        return self._named(NamedStack)

    def recurrent_stacks(self) -> list[NamedRecurrentStack]:
        """The one stack of the backbone, if it is recurrent."""
        return self._named(NamedRecurrentStack)

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        """The one stack of the backbone, if it is of gated convolutions."""
        return self._named(NamedConvolutionalStack)

    def _named(self, kind: type[N]) -> list[N]:
        """The one stack of the backbone, if it is of a kind that the inspector knows, and of this one."""
        stack = self.backbone.stack
        if not isinstance(stack, InspectableStack):
            return []
        named = stack.named(SIDE_NAMES[self.side], self.line)
        return [named] if isinstance(named, kind) else []

    def embedding_of(self, line: str) -> Embedding | None:
        """The embeddings of the one text; None where the inputs are no tokens."""
        del line
        return self.backbone.embedding if isinstance(self.backbone.embedding, Embedding) else None

    def token_rows(self) -> Names:
        """The tables of the embeddings, and the output where it is over the vocabulary."""
        embedding = self.embedding_of(self.line)
        tables = [name for name, _ in embedding.named_parameters()] if embedding else []
        return {f"backbone.embedding.{name}": "source" for name in tables} | (
            OUTPUT_ROWS if self.predicts_tokens else {}
        )

    def warm_start_names(self, start: Model) -> Names:
        """All weights of the same kind of model; of another kind its encoder, or its backbone and any pooler."""
        return super().warm_start_names(start) or (
            ENCODER_NAMES if isinstance(start, SourceToTarget) else BACKBONE_NAMES
        )


SIDE_NAMES = {"encoder": "enc", "decoder": "dec"}
BACKBONE_NAMES: Names = {"backbone.": "backbone.", "next_sentence.pooler.": "pooler.", "pooler.": "pooler."}
ENCODER_NAMES: Names = {"source_embedding.": "backbone.embedding.", "encoder.": "backbone.stack."}
BACKBONES: dict[str, type[Backbone[Any]]] = {"encoder": EncoderOnly, "decoder": DecoderOnly}
