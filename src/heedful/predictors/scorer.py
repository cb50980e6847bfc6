"""Text regression: predicts a number for a text or a pair of texts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor

from heedful.architectures import TextClassifier
from heedful.config.schema import DataConfig
from heedful.predictors.text_predictor import Text, TextPredictor
from heedful.text.tokenizer import Tokenizer

N = TypeVar("N", float, Tensor, np.ndarray)
SMALL = 1e-3  # numbers below are written by their significant digits


@dataclass(frozen=True)
class Standardisation:
    """What a regression learns in place of its labels: (label - mean) / scale, which is the same in every unit.

    Attributes:
        mean: the mean of the labels of the training data; 0 where the labels are learned as they are.
        scale: their standard deviation; 1 where the labels are learned as they are.
    """

    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, data: DataConfig) -> "Standardisation":
        if data.label_mean is None or data.label_scale is None:
            return cls()
        return cls(data.label_mean, data.label_scale)

    @classmethod
    def of_labels(cls, labels: Sequence[float]) -> "Standardisation":
        """Compute mean and standard deviation of labels in float32, as they are stored; their order does not count."""
        stored = np.asarray(labels, np.float32).tolist()
        mean = float(np.float32(math.fsum(stored) / len(stored)))  # so that `standardised` subtracts it exactly
        deviation = math.sqrt(math.fsum((label - mean) ** 2 for label in stored) / len(stored))
        return cls(mean, deviation or 1.0)  # equal labels have nothing to divide by

    def standardised(self, labels: N) -> N:
        return (labels - self.mean) / self.scale

    def restored(self, outputs: N) -> N:
        return outputs * self.scale + self.mean


@dataclass(frozen=True)
class Scored:
    """Number predicted for a text by a regression model, in the units of the training data.

    Attributes:
        truncated: True if the text was longer than the model reads, so that its end did not count.
    """

    score: float
    truncated: bool = False

    def __str__(self) -> str:
        return f"{self.score:.4f}" if abs(self.score) >= SMALL else f"{self.score:.4g}"


class Scorer(TextPredictor[TextClassifier, Scored]):
    """Scorer: a regression model that predicts a number for each text.

    Args:
        model: the model; its outputs are standardised, as it has learned them.
        tokenizer: its tokenizer.
        data: its settings for data, with the mean and the scale of the labels.
    """

    columns = ("score",)

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = Standardisation.of(data)

    def answers(self, texts: Iterator[Text]) -> Iterator[Scored]:
        """Predict a number for each text, in order."""
        for row, output in self.reader.read_with_rows(texts):
            yield Scored(self.labels.restored(output.item()), row.truncated)
