"""Backbones: an input layer and one stack, without any head; of BERT and GPT, and of other architectures.

B batch, N inputs, S positions, T new tokens, D model, H size of the hidden states, D in most backbones.
"""

from abc import ABC
from typing import Any, ClassVar, Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.model import OUTPUT_ROWS, Model, Names, SourceToTarget
from heedful.config.schema import ArchitectureConfig, TextModelConfig
from heedful.config.user_code import find_class
from heedful.config.validate import KEY, config_of
from heedful.errors import InputError
from heedful.nn.embedding import Embedding, InputLayer, OneSegment, Segments
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import (
    InspectableStack,
    NamedConvolutionalStack,
    NamedRecurrentStack,
    NamedStack,
    SequenceStack,
)
from heedful.registry import MODELS, at, public_names

InputLayerType = TypeVar("InputLayerType", bound=InputLayer)
N = TypeVar("N", NamedStack, NamedRecurrentStack, NamedConvolutionalStack)

SIDE_NAMES = {"encoder": "enc", "decoder": "dec"}
BACKBONE_NAMES: Names = {"backbone.": "backbone.", "next_sentence.pooler.": "pooler.", "pooler.": "pooler."}
ENCODER_NAMES: Names = {"source_embedding.": "backbone.embedding.", "encoder.": "backbone.stack."}

# The backbones of the Transformer were defined here in version 0.1.
__getattr__ = public_names(
    __name__, {"heedful.architectures.transformer.model": ("BACKBONES", "DecoderOnly", "EncoderOnly")}
)


class Backbone(nn.Module, ABC, Generic[InputLayerType]):
    """Base class of backbones, models of one stack: token ids in, a hidden state for each token out.

    Other inputs than token ids come through another input layer.
    """

    causal: ClassVar[bool]  # True if a token attends to earlier tokens only
    pooling: ClassVar[str]  # the pooling that stands for the whole text, unless the recipe names another

    def __init__(self, config: TextModelConfig, embedding: InputLayerType, stack: SequenceStack) -> None:
        super().__init__()
        self.embedding = embedding
        self.segments = Segments(config) if config.segments else OneSegment()
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
        if segments is None:  # one text is segment 0
            segments = torch.zeros_like(padding_mask, dtype=torch.long)
        x = self.segments(x, segments)
        # The mask alone makes the same stack read (BERT) or write (GPT).
        return self.stack(x, AttentionMask(padding_mask, x.size(1), causal=self.causal)), padding_mask


def model_class(config: ArchitectureConfig) -> Any:
    """The class of a model, or of its backbone, for the architecture and the family of a configuration.

    Raises:
        InputError: the architecture has no model of this family.
    """
    own = find_class(KEY, config.architecture)
    if own is None:
        families = MODELS[config.architecture]
        if config.family not in families:
            raise InputError(
                f'{KEY} = "{config.architecture}" has no model of family "{config.family}"; set model.family = '
                f'"{next(iter(families))}"'
            )
        return at(families[config.family])
    # A class of the user's is of one family, by the class that it extends.
    (family,) = families_of(config.architecture)
    if family != config.family:
        raise InputError(
            f'{KEY} = "{config.architecture}" is of family "{family}", not "{config.family}"; set model.family = '
            f'"{family}"'
        )
    return own


def families_of(architecture: str) -> tuple[str, ...]:
    """The families of which an architecture has models; a class of the user's own has one, by the class it extends.

    Raises:
        InputError: the module of the class has not been imported.
    """
    own = find_class(KEY, architecture)
    if own is None:
        return tuple(MODELS[architecture])
    if issubclass(own, Backbone):
        return ("decoder" if own.causal else "encoder",)
    return ("encoder_decoder" if issubclass(own, SourceToTarget) else config_of(own).family,)


def text_backbone(config: TextModelConfig, vocab: int) -> Backbone[Embedding]:
    """Build the backbone of a configuration with embeddings of token ids as its input layer."""
    return model_class(config)(config, Embedding(vocab, config))


class BackboneModel(Model):
    """A backbone and a head: BERT, GPT, and models with task heads."""

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
        return self._named(NamedStack)

    def recurrent_stacks(self) -> list[NamedRecurrentStack]:
        return self._named(NamedRecurrentStack)

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        return self._named(NamedConvolutionalStack)

    def _named(self, kind: type[N]) -> list[N]:
        """The one stack of the backbone, if it is of a kind that the inspector knows, and of this one."""
        stack = self.backbone.stack
        if not isinstance(stack, InspectableStack):
            return []
        named = stack.named(SIDE_NAMES[self.side], self.line)
        return [named] if isinstance(named, kind) else []

    def embedding_of(self, line: str) -> Embedding | None:
        """The embeddings of the one text; None where the inputs are not tokens."""
        del line
        return self.backbone.embedding if isinstance(self.backbone.embedding, Embedding) else None

    def token_rows(self) -> Names:
        """The tables of the embeddings, and the output where it is over the vocabulary."""
        embedding = self.embedding_of(self.line)
        tables = dict(embedding.named_parameters()) if embedding else {}
        output = OUTPUT_ROWS if self.predicts_tokens else {}
        return {f"backbone.embedding.{name}": "source" for name in tables} | output

    def warm_start_names(self, start: Model) -> Names:
        """All weights of the same kind of model; of another kind its encoder, or its backbone and any pooler."""
        # A classifier starts from a BERT, or from the encoder of a translator.
        other = ENCODER_NAMES if isinstance(start, SourceToTarget) else BACKBONE_NAMES
        return super().warm_start_names(start) or other
