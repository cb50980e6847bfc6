"""Predictors of trained models, one file for each kind of answer: classes, scores, tags, answer spans, vectors."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.decode.predictor import AnyPredictor, Predictor
    from heedful.predict.batching import Text

__all__ = ["AnyPredictor", "Predictor", "Text"]

_MODULES = {
    "heedful.decode.predictor": (
        "AnyPredictor",
        "Predictor",
    ),
    "heedful.predict.batching": ("Text",),
}

__getattr__ = public_names(__name__, _MODULES)
