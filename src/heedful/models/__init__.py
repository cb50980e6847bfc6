"""Models: encoder-decoder, BERT, GPT, and task heads, assembled from the layers in `heedful.nn`."""

from heedful.models.backbone import FAMILIES, Backbone, DecoderOnly, EncoderOnly
from heedful.models.language_model import LanguageModel
from heedful.models.masked_language_model import MaskedLanguageModel
from heedful.models.task_heads import SentenceEncoder, TextClassifier, TokenClassifier
from heedful.models.transformer import EncoderDecoder
from heedful.models.weights import load_weights, weights

__all__ = [
    "FAMILIES",
    "Backbone",
    "DecoderOnly",
    "EncoderDecoder",
    "EncoderOnly",
    "LanguageModel",
    "MaskedLanguageModel",
    "SentenceEncoder",
    "TextClassifier",
    "TokenClassifier",
    "load_weights",
    "weights",
]
