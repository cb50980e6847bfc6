"""Predictors of trained models, one file for each kind of answer: classes, scores, tags, answer spans, vectors."""

from heedful.decode.predictor import Predictor
from heedful.models import Model
from heedful.predict.batching import Text

__all__ = ["AnyPredictor", "Predictor", "Text"]

AnyPredictor = Predictor[Model, object]  # the predictor of a model whose task is not known
