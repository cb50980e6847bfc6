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

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = data.labels
        self.decide_by(Decision())

    def decide_by(self, decision: Decision) -> None:
        """Choose classes in another way from now on, such as by a threshold, and show other columns in tables."""
        self.decision = decision
        self.columns = decision.columns(self.labels)

    def cells(self, answer: object) -> dict[str, object]:
        """Return what stands in each of the `columns` for an answer: the class and the probabilities."""
        return self.decision.cells(answer) if isinstance(answer, Classified) else super().cells(answer)

    def line(self, answer: object) -> str:
        """Write an answer as a line: the class or, where the decision says so, the most probable ones."""
        return self.decision.line(answer) if isinstance(answer, Classified) else super().line(answer)

    def answers(self, texts: Iterator[Text]) -> Iterator[Classified]:
        """Predict the class of each text, in order."""
        for row, logits in self.reader.read_with_rows(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield self.decision.classify(shares, truncated=row.truncated)
