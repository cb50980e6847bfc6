"""A number for a text."""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.models import TextClassifier
from heedful.predict.batching import Text
from heedful.predict.text_predictor import TextPredictor


@dataclass(frozen=True)
class Scored:
    """A number in the units of the training data.

    Attributes:
        truncated: the text was longer than the model reads, and its end did not count.
    """

    score: float
    truncated: bool = False

    def __str__(self) -> str:
        return f"{self.score:.4f}"


class Scorer(TextPredictor[TextClassifier, Scored]):
    """A model that was trained by regression."""

    def answers(self, texts: Iterator[Text]) -> Iterator[Scored]:
        """The number of each text, in order."""
        return (Scored(output.item(), row.truncated) for row, output in self.reader.read_with_rows(texts))
