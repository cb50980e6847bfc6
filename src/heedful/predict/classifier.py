"""Text classification: predicts the class of a text or a pair of texts."""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.config.schema import DataConfig
from heedful.models import TextClassifier
from heedful.predict.batching import Text
from heedful.predict.text_predictor import TextPredictor
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Classified:
    """Class predicted for a text, with the probability of each class.

    Attributes:
        truncated: True if the text was longer than the model reads, so that its end did not count.
    """

    label: str
    probabilities: dict[str, float]
    truncated: bool = False

    def __str__(self) -> str:
        return self.label


class Classifier(TextPredictor[TextClassifier, Classified]):
    """Text classifier: a model trained to predict one of the classes in `data.labels`."""

    columns = ("label",)

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = data.labels

    def answers(self, texts: Iterator[Text]) -> Iterator[Classified]:
        """Predict the class of each text, in order."""
        for row, logits in self.reader.read_with_rows(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield Classified(max(shares, key=lambda label: shares[label]), shares, row.truncated)
