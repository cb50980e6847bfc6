"""Models: encoder-decoder, BERT, GPT, and task heads, assembled from the layers in `heedful.nn`."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.architectures.backbone import Backbone, BackboneModel, model_class
    from heedful.architectures.heads import (
        LanguageModel,
        SentenceEncoder,
        SequenceClassifier,
        TextClassifier,
        TokenClassifier,
    )
    from heedful.architectures.model import Model, SourceToTarget, load_weights, weights
    from heedful.architectures.transformer.masked_models import MaskedLanguageModel, MaskedPatchModel
    from heedful.architectures.transformer.model import BACKBONES, DecoderOnly, EncoderDecoder, EncoderOnly

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

# Imported on first use, so that a program that needs one model does not import the modules of all others.
_MODULES = {
    "heedful.architectures.backbone": ("Backbone", "BackboneModel", "model_class"),
    "heedful.architectures.heads": (
        "LanguageModel",
        "SentenceEncoder",
        "SequenceClassifier",
        "TextClassifier",
        "TokenClassifier",
    ),
    "heedful.architectures.model": ("Model", "SourceToTarget", "load_weights", "weights"),
    "heedful.architectures.transformer.masked_models": ("MaskedLanguageModel", "MaskedPatchModel"),
    "heedful.architectures.transformer.model": ("BACKBONES", "DecoderOnly", "EncoderDecoder", "EncoderOnly"),
}

__getattr__ = public_names(__name__, _MODULES)
