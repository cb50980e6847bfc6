"""Text classification: the class of a text or a pair of texts, by probability or by a threshold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from heedful.architectures import TextClassifier
from heedful.config.schema import DataConfig
from heedful.errors import InputError
from heedful.predictors.outputs import Option
from heedful.predictors.text_predictor import Text, TextPredictor
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Classified:
    """Class predicted for a text or a file, with the probability of each class.

    Attributes:
        label: the class; an empty text where no class reaches its threshold.
        probabilities: the probability of each class or, with `top_k`, of the most probable ones in their order.
        truncated: True if the text was longer than the model reads, so that its end did not count.
    """

    label: str
    probabilities: dict[str, float]
    truncated: bool = False

    def options(self) -> list[Option]:
        """Return the classes with their probabilities, the most probable first."""
        ranking = sorted(self.probabilities.items(), key=lambda item: -item[1])
        return [Option(label, probability) for label, probability in ranking]

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Decision:
    """How a class is chosen, and how many probabilities an answer has.

    Without thresholds it is the most probable class. A class with a threshold is chosen if its probability reaches the
    threshold; of several the most probable one. Otherwise it is the most probable class without a threshold.

    Attributes:
        threshold: the probability that the chosen class needs at least; a less probable one is not named.
        thresholds: the thresholds of single classes.
        top_k: the number of the most probable classes of an answer; None: all, in the order of the recipe.
    """

    threshold: float = 0.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    top_k: int | None = None

    def classify(self, probabilities: dict[str, float], *, truncated: bool = False) -> Classified:
        """Choose the class of an input, given the probability of each class."""
        certain = [label for label, threshold in self.thresholds.items() if probabilities[label] >= threshold]
        candidates = certain or [label for label in probabilities if label not in self.thresholds]
        label = max(candidates, key=lambda label: probabilities[label], default="")
        if label and not certain and probabilities[label] < self.threshold:
            label = ""
        if self.top_k is not None:
            probabilities = dict(sorted(probabilities.items(), key=lambda entry: -entry[1])[: self.top_k])
        return Classified(label, probabilities, truncated)

    def line(self, answer: Classified) -> str:
        """Format an answer as a line: the class or, with `top_k`, the most probable classes with probabilities."""
        if self.top_k is None:
            return answer.label
        return "\t".join(f"{label}\t{share:.4f}" for label, share in answer.probabilities.items())

    def columns(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Name the columns of a table of answers: the class, and a probability for each class or the k best of both."""
        if self.top_k is None:
            return ("label", *(f"probability_{label}" for label in labels))
        ranks = range(1, min(self.top_k, len(labels)) + 1)
        return ("label", *(f"{what}_{rank}" for rank in ranks for what in ("label", "probability")))

    def cells(self, answer: Classified) -> dict[str, object]:
        """Return the value in each of the columns for an answer."""
        cells: dict[str, object] = {"label": answer.label}
        for rank, (label, share) in enumerate(answer.probabilities.items(), start=1):
            if self.top_k is None:
                cells[f"probability_{label}"] = share
            else:
                cells |= {f"label_{rank}": label, f"probability_{rank}": share}
        return cells


def decision_of(thresholds: Sequence[str], top_k: int | None, labels: Sequence[str]) -> Decision:
    """Create a decision from texts such as "0.8", for all classes, and "complaint=0.3", for one."""
    default, single = 0.0, {}
    for text in thresholds:
        label, _, number = text.rpartition("=")
        try:
            threshold = float(number)
        except ValueError:
            threshold = -1.0
        if not 0 <= threshold <= 1:
            raise InputError(
                f"--threshold {text}: give a probability from 0 to 1, such as 0.8, or CLASS=0.3 for one class"
            )
        if label and label not in labels:
            raise InputError(f"--threshold {text}: {label!r} is not one of the classes {', '.join(labels)}")
        if label:
            single[label] = threshold
        else:
            default = threshold
    return Decision(default, single, top_k)


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
        """Choose classes in another way from now on, such as by a threshold, with its own columns in tables."""
        self.decision = decision
        self.columns = decision.columns(self.labels)

    def cells(self, answer: Classified) -> dict[str, object]:
        return self.decision.cells(answer)

    def line(self, answer: Classified) -> str:
        return self.decision.line(answer)

    def options_of(self, answer: Classified) -> list[Option]:
        return answer.options()

    def answers(self, texts: Iterator[Text]) -> Iterator[Classified]:
        """Predict the class of each text, in order."""
        for row, logits in self.reader.read_with_rows(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield self.decision.classify(shares, truncated=row.truncated)
