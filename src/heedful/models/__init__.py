"""Models: encoder-decoder, BERT, GPT, and task heads, assembled from the layers in `heedful.nn`."""

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
