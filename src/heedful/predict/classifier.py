"""Text classification: predicts the class of a text or a pair of texts."""

from collections.abc import Iterator

from heedful.config.schema import DataConfig
from heedful.models import TextClassifier
from heedful.predict.batching import Text
from heedful.predict.decision import Classified, Decision
from heedful.predict.text_predictor import TextPredictor
from heedful.text.tokenizer import Tokenizer


class Classifier(TextPredictor[TextClassifier, Classified]):
    """Text classifier: a model trained to predict one of the classes in `data.labels`.

    Attributes:
        decision: how a class is chosen, such as by a threshold.
    """

    columns = ("label",)

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = data.labels
        self.decision = Decision()

    def answers(self, texts: Iterator[Text]) -> Iterator[Classified]:
        """Predict the class of each text, in order."""
        for row, logits in self.reader.read_with_rows(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield self.decision.classify(shares, truncated=row.truncated)
