"""Backbones, which consist of an input layer and one stack: models such as BERT and GPT without their heads.

B batch, N inputs, S positions, T new tokens, D model, H hidden size, which is D in most backbones.
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
from heedful.nn.named_stacks import NamedConvolutionalStack, NamedRecurrentStack, NamedStack
from heedful.registry import MODELS, import_attribute, public_names

InputLayerType = TypeVar("InputLayerType", bound=InputLayer)
N = TypeVar("N", NamedStack, NamedRecurrentStack, NamedConvolutionalStack)

SIDE_NAMES = {"encoder": "enc", "decoder": "dec"}
BACKBONE_NAMES: Names = {"backbone.": "backbone.", "next_sentence.pooler.": "pooler.", "pooler.": "pooler."}
ENCODER_NAMES: Names = {"source_embedding.": "backbone.embedding.", "encoder.": "backbone.stack."}

# The Transformer's backbones were defined in this module in version 0.1, and can still be imported from it.
__getattr__ = public_names(
    __name__, {"heedful.architectures.transformer.model": ("BACKBONES", "DecoderOnly", "EncoderOnly")}
)


class Backbone(nn.Module, ABC, Generic[InputLayerType]):
    """Base class of backbones, which have one stack: token ids in, one hidden state per token out.

    Images, video and audio enter through other input layers. `heedful.nn.named_stacks` describes what a stack provides.
    """

    causal: ClassVar[bool]  # True if a token attends only to itself and earlier tokens
    pooling: ClassVar[str]  # the default way to pool hidden states into the vector of a text

    def __init__(self, config: TextModelConfig, embedding: InputLayerType, stack: Any) -> None:
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
        """Compute the hidden states of padded rows; the arguments are those of `encode`."""
        return self.encode(inputs, padding_mask, segments)[0]

    def encode(
        self,
        inputs: Shaped[Tensor, "B N *F"],
        padding_mask: Bool[Tensor, "B N"],
        segments: Int[Tensor, "B S"] | None = None,
    ) -> tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]:
        """Compute the hidden states of padded rows; return them with their padding mask.

        Args:
            inputs: Token ids, or other inputs of the input layer.
            padding_mask: True for real inputs, False for padding.
            segments: The segment of each position, counted from 0; by default all are 0. A model without segments
                ignores them.
        """
        return self.encode_vectors(*self.embedding.embed(inputs, padding_mask), segments)

    def encode_vectors(
        self, x: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"], segments: Int[Tensor, "B S"] | None = None
    ) -> tuple[Float[Tensor, "B S H"], Bool[Tensor, "B S"]]:
        """Compute hidden states from the vectors of an input layer; return them with their padding mask."""
        if segments is None:  # a single text is segment 0
            segments = torch.zeros_like(padding_mask, dtype=torch.long)
        x = self.segments(x, segments)
        # Apart from relative positions, the stacks of a BERT and of a GPT differ only in this mask.
        return self.stack(x, AttentionMask(padding_mask, x.size(1), causal=self.causal)), padding_mask


def model_class(config: ArchitectureConfig) -> Any:
    """Return the class of a model, or of its backbone, for the architecture and family of a configuration.

    Raises:
        InputError: the architecture has no model of this family, or the module of a custom class has not been imported.
    """
    user_class = find_class(KEY, config.architecture)
    if user_class is None:
        families = MODELS[config.architecture]
        if config.family not in families:
            raise InputError(
                f'{KEY} = "{config.architecture}" has no model of family "{config.family}"; set model.family = '
                f'"{next(iter(families))}"'
            )
        return import_attribute(families[config.family])
    # A custom class has one family, determined by its base class.
    (family,) = families_of(config.architecture)
    if family != config.family:
        raise InputError(
            f'{KEY} = "{config.architecture}" is of family "{family}", not "{config.family}"; set model.family = '
            f'"{family}"'
        )
    return user_class


def families_of(architecture: str) -> tuple[str, ...]:
    """Return the families of an architecture's models; a custom class has only the family of its base class.

    Raises:
        InputError: the module of the class has not been imported.
    """
    user_class = find_class(KEY, architecture)
    if user_class is None:
        return tuple(MODELS[architecture])
    if issubclass(user_class, Backbone):
        return ("decoder" if user_class.causal else "encoder",)
    return ("encoder_decoder" if issubclass(user_class, SourceToTarget) else config_of(user_class).family,)


def text_backbone(config: TextModelConfig, vocab: int) -> Backbone[Embedding]:
    return model_class(config)(config, Embedding(vocab, config))


class BackboneModel(Model):
    """Base class of models that consist of a backbone and a head: BERT, GPT, and models with task heads."""

    backbone: Backbone[Any]

    @property
    def side(self) -> str:
        return "decoder" if self.backbone.causal else "encoder"

    @property
    def line(self) -> str:
        # A GPT generates its text, a BERT reads it.
        return "tgt" if self.backbone.causal else "src"

    def named_stacks(self) -> list[NamedStack]:
        return self._named(NamedStack)

    def recurrent_stacks(self) -> list[NamedRecurrentStack]:
        return self._named(NamedRecurrentStack)

    def convolutional_stacks(self) -> list[NamedConvolutionalStack]:
        return self._named(NamedConvolutionalStack)

    def _named(self, kind: type[N]) -> list[N]:
        # Stacks that the inspector cannot record, such as `NoLayers` in a bag of words, have no method `named`.
        name = getattr(self.backbone.stack, "named", None)
        stack = name and name(SIDE_NAMES[self.side], self.line)
        return [stack] if isinstance(stack, kind) else []

    def embedding_of(self, line: str) -> Embedding | None:
        del line
        return self.backbone.embedding if isinstance(self.backbone.embedding, Embedding) else None

    def token_rows(self) -> Names:
        embedding = self.embedding_of(self.line)
        tables = dict(embedding.named_parameters()) if embedding else {}
        output = OUTPUT_ROWS if self.predicts_tokens else {}
        return {f"backbone.embedding.{name}": "source" for name in tables} | output

    def warm_start_names(self, start: Model) -> Names:
        """Map all weights of `start` if it has the same class, otherwise its encoder, or its backbone and pooler."""
        # For example, a classifier can start from a BERT, or from the encoder of a translator.
        other = ENCODER_NAMES if isinstance(start, SourceToTarget) else BACKBONE_NAMES
        return super().warm_start_names(start) or other
