"""The class of a text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heedful.config.schema import DataConfig
from heedful.models import TextClassifier
from heedful.predict.reader import Reader, Text
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Classified:
    """A class, and how probable the model takes each to be."""

    label: str
    probabilities: dict[str, float]

    def __str__(self) -> str:
        return self.label


class Classifier:
    """A model that was trained to tell the classes of `data.labels`."""

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        self.reader = Reader(model, tokenizer, data.max_length)
        self.labels = data.labels

    def predict(self, texts: Iterable[Text]) -> Iterator[Classified]:
        """Classify texts, in their order."""
        for logits in self.reader.read(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield Classified(max(shares, key=lambda label: shares[label]), shares)
