"""Text regression: predicts a number for a text or a pair of texts."""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.models import TextClassifier
from heedful.predict.batching import Text
from heedful.predict.text_predictor import TextPredictor


@dataclass(frozen=True)
class Scored:
    """Number predicted for a text by a regression model, in the units of the training data.

    Attributes:
        truncated: True if the text was longer than the model reads, so that its end did not count.
    """

    score: float
    truncated: bool = False

    def __str__(self) -> str:
        return f"{self.score:.4f}"


class Scorer(TextPredictor[TextClassifier, Scored]):
    """Scorer: a regression model that predicts a number for each text."""

    columns = ("score",)

    def answers(self, texts: Iterator[Text]) -> Iterator[Scored]:
        """Predict a number for each text, in order."""
        return (Scored(output.item(), row.truncated) for row, output in self.reader.read_with_rows(texts))
