"""Predictors of trained models, one file for each kind of answer: classes, scores, tags, answer spans, vectors."""

from torch import nn

from heedful.decode.predictor import Predictor
from heedful.predict.batching import Text

__all__ = ["AnyPredictor", "Predictor", "Text"]

AnyPredictor = Predictor[nn.Module, object]  # the predictor of a model whose task is not known
