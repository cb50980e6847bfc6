"""Models: encoder-decoder, BERT, GPT, and task heads, assembled from the layers in `heedful.nn`."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.models.architectures import model_class
    from heedful.models.backbone import BACKBONES, Backbone, BackboneModel, DecoderOnly, EncoderOnly
    from heedful.models.language_model import LanguageModel
    from heedful.models.masked_language_model import MaskedLanguageModel
    from heedful.models.masked_patches import MaskedPatchModel
    from heedful.models.model import Model, SourceToTarget, load_weights, weights
    from heedful.models.task_heads import SentenceEncoder, SequenceClassifier, TextClassifier, TokenClassifier
    from heedful.models.transformer import EncoderDecoder

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
    "heedful.models.architectures": ("model_class",),
    "heedful.models.backbone": (
        "BACKBONES",
        "Backbone",
        "BackboneModel",
        "DecoderOnly",
        "EncoderOnly",
    ),
    "heedful.models.language_model": ("LanguageModel",),
    "heedful.models.masked_language_model": ("MaskedLanguageModel",),
    "heedful.models.masked_patches": ("MaskedPatchModel",),
    "heedful.models.model": (
        "Model",
        "SourceToTarget",
        "load_weights",
        "weights",
    ),
    "heedful.models.task_heads": (
        "SentenceEncoder",
        "SequenceClassifier",
        "TextClassifier",
        "TokenClassifier",
    ),
    "heedful.models.transformer": ("EncoderDecoder",),
}

__getattr__ = public_names(__name__, _MODULES)
