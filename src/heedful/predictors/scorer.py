"""Text regression: predicts a number for a text or text pair."""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.architectures import TextClassifier
from heedful.config.schema import DataConfig
from heedful.data.readers.labelled import Standardisation
from heedful.predictors.text_predictor import Text, TextPredictor
from heedful.text.tokenizer import Tokenizer

MIN_FIXED_POINT = 1e-3  # smaller numbers are written with significant digits


@dataclass(frozen=True)
class Scored:
    """Number predicted for a text by a regression model, in the unit of the training data.

    Attributes:
        truncated: True if the text was longer than the model can read, so its end was ignored.
    """

    score: float
    truncated: bool = False

    def __str__(self) -> str:
        return f"{self.score:.4f}" if abs(self.score) >= MIN_FIXED_POINT else f"{self.score:.4g}"


class Scorer(TextPredictor[TextClassifier, Scored]):
    """Scorer: a regression model that predicts a number for each text.

    The model's standardised outputs are converted back with the mean and the scale of the labels in `data`.
    """

    columns = ("score",)

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = Standardisation.of(data)

    def answers(self, texts: Iterator[Text]) -> Iterator[Scored]:
        for row, output in self.reader.read_with_rows(texts):
            yield Scored(self.labels.restored(output.item()), row.truncated)
