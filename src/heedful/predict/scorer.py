"""A number for a text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heedful.config.schema import DataConfig
from heedful.models import TextClassifier
from heedful.predict.reader import Reader, Text
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Scored:
    """A number in the units of the training data."""

    score: float

    def __str__(self) -> str:
        return f"{self.score:.4f}"


class Scorer:
    """A model that was trained by regression."""

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        self.reader = Reader(model, tokenizer, data.max_length)

    def predict(self, texts: Iterable[Text]) -> Iterator[Scored]:
        """Give each text a number, in their order."""
        return (Scored(output.item()) for output in self.reader.read(texts))
