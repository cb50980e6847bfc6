"""Predictors of trained models, one file for each kind of answer: classes, scores, tags, answer spans, vectors."""

from heedful.decode.predictor import AnyPredictor, Predictor
from heedful.predict.batching import Text

__all__ = ["AnyPredictor", "Predictor", "Text"]
