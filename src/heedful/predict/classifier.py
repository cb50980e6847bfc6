"""The class of a text."""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.config.schema import DataConfig
from heedful.models import TextClassifier
from heedful.predict.batching import Text
from heedful.predict.text_predictor import TextPredictor
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Classified:
    """A class, and how probable the model takes each to be.

    Attributes:
        truncated: the text was longer than the model reads, and its end did not count.
    """

    label: str
    probabilities: dict[str, float]
    truncated: bool = False

    def __str__(self) -> str:
        return self.label


class Classifier(TextPredictor[TextClassifier, Classified]):
    """A model that was trained to tell the classes of `data.labels`."""

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = data.labels

    def answers(self, texts: Iterator[Text]) -> Iterator[Classified]:
        """The class of each text, in order."""
        for row, logits in self.reader.read_with_rows(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield Classified(max(shares, key=lambda label: shares[label]), shares, row.truncated)
