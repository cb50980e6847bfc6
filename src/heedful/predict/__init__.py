"""Predictors of trained models, one file for each kind of answer: classes, scores, tags, answer spans, vectors."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

from heedful.decode.filler import Filler
from heedful.decode.generator import Generator
from heedful.decode.translator import Translator
from heedful.predict.answerer import Answerer
from heedful.predict.batching import Text
from heedful.predict.classifier import Classifier
from heedful.predict.retriever import Retriever
from heedful.predict.scorer import Scorer
from heedful.predict.tagger import Tagger

__all__ = ["AnyPredictor", "Predictor", "Text"]

AnyPredictor = Translator | Generator | Filler | Classifier | Scorer | Tagger | Answerer | Retriever


@runtime_checkable
class Predictor(Protocol):
    """Interface of a model that gives one answer for each text."""

    def predict_lines(self, texts: Iterable[Text], /) -> Iterator[Any]:
        """Predict the answer to each text, in order: dataclasses whose `str` is one line."""
        ...
