"""Predictors of trained models, one file for each kind of answer: classes, scores, tags, answer spans, vectors."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.predictors.predictor import AnyPredictor, Predictor
    from heedful.predictors.text_predictor import Text

__all__ = ["AnyPredictor", "Predictor", "Text"]

_MODULES = {
    "heedful.predictors.predictor": (
        "AnyPredictor",
        "Predictor",
    ),
    "heedful.predictors.text_predictor": ("Text",),
}

__getattr__ = public_names(__name__, _MODULES)
