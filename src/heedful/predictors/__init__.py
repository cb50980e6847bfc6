"""Predictors for trained models, one file per kind of answer: texts, classes, scores, tags, spans, vectors."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.predictors.answerer import Answerer
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.filler import Filler
    from heedful.predictors.generator import Generator
    from heedful.predictors.image_text_retriever import ImageTextRetriever
    from heedful.predictors.media_classifier import MediaClassifier
    from heedful.predictors.patch_filler import PatchFiller
    from heedful.predictors.predictor import AnyPredictor, Predictor
    from heedful.predictors.retriever import Retriever
    from heedful.predictors.scorer import Scorer
    from heedful.predictors.tagger import Tagger
    from heedful.predictors.text_predictor import Text, TextPredictor
    from heedful.predictors.transcriber import Transcriber
    from heedful.predictors.translator import Translator
    from heedful.predictors.word_vectors import WordVectors
    from heedful.search.constraints import Constraints

__all__ = [
    "Answerer",
    "AnyPredictor",
    "Captioner",
    "Classifier",
    "Constraints",
    "Filler",
    "Generator",
    "ImageTextRetriever",
    "MediaClassifier",
    "PatchFiller",
    "Predictor",
    "Retriever",
    "Scorer",
    "Tagger",
    "Text",
    "TextPredictor",
    "Transcriber",
    "Translator",
    "WordVectors",
]

_MODULES = {
    "heedful.predictors.answerer": ("Answerer",),
    "heedful.predictors.captioner": ("Captioner",),
    "heedful.predictors.classifier": ("Classifier",),
    "heedful.predictors.filler": ("Filler",),
    "heedful.predictors.generator": ("Generator",),
    "heedful.predictors.image_text_retriever": ("ImageTextRetriever",),
    "heedful.predictors.media_classifier": ("MediaClassifier",),
    "heedful.predictors.patch_filler": ("PatchFiller",),
    "heedful.predictors.predictor": ("AnyPredictor", "Predictor"),
    "heedful.predictors.retriever": ("Retriever",),
    "heedful.predictors.scorer": ("Scorer",),
    "heedful.predictors.tagger": ("Tagger",),
    "heedful.predictors.text_predictor": ("Text", "TextPredictor"),
    "heedful.predictors.transcriber": ("Transcriber",),
    "heedful.predictors.translator": ("Translator",),
    "heedful.predictors.word_vectors": ("WordVectors",),
    "heedful.search.constraints": ("Constraints",),
}

__getattr__ = public_names(__name__, _MODULES)
