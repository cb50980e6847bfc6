"""Models: encoder-decoder, BERT, GPT, and task heads, assembled from the layers in `heedful.nn`."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.architectures.architectures import model_class
    from heedful.architectures.backbone import BACKBONES, Backbone, BackboneModel, DecoderOnly, EncoderOnly
    from heedful.architectures.language_model import LanguageModel
    from heedful.architectures.masked_language_model import MaskedLanguageModel
    from heedful.architectures.masked_patches import MaskedPatchModel
    from heedful.architectures.model import Model, SourceToTarget, load_weights, weights
    from heedful.architectures.task_heads import SentenceEncoder, SequenceClassifier, TextClassifier, TokenClassifier
    from heedful.architectures.transformer import EncoderDecoder

__all__ = [
    "BACKBONES",
    "Backbone",
    "BackboneModel",
    "DecoderOnly",
    "EncoderDecoder",
    "EncoderOnly",
    "LanguageModel",
    "MaskedLanguageModel",
    "MaskedPatchModel",
    "Model",
    "SentenceEncoder",
    "SequenceClassifier",
    "SourceToTarget",
    "TextClassifier",
    "TokenClassifier",
    "load_weights",
    "model_class",
    "weights",
]

_MODULES = {
    "heedful.architectures.architectures": ("model_class",),
    "heedful.architectures.backbone": (
        "BACKBONES",
        "Backbone",
        "BackboneModel",
        "DecoderOnly",
        "EncoderOnly",
    ),
    "heedful.architectures.language_model": ("LanguageModel",),
    "heedful.architectures.masked_language_model": ("MaskedLanguageModel",),
    "heedful.architectures.masked_patches": ("MaskedPatchModel",),
    "heedful.architectures.model": (
        "Model",
        "SourceToTarget",
        "load_weights",
        "weights",
    ),
    "heedful.architectures.task_heads": (
        "SentenceEncoder",
        "SequenceClassifier",
        "TextClassifier",
        "TokenClassifier",
    ),
    "heedful.architectures.transformer": ("EncoderDecoder",),
}

__getattr__ = public_names(__name__, _MODULES)
