"""Text classification: the class of a text or text pair, by probability or by a threshold."""

import math
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
        label: The class; empty if no class reaches its threshold.
        probabilities: The probability of each class or, with `top_k`, of the most probable classes, best first.
        truncated: True if the text was longer than the model can read, so its end was ignored.
    """

    label: str
    probabilities: dict[str, float]
    truncated: bool = False

    def options(self) -> list[Option]:
        """Return the classes, most probable first."""
        ranking = sorted(self.probabilities.items(), key=lambda item: -item[1])
        return [Option(label, probability) for label, probability in ranking]

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True)
class Decision:
    """Rule that chooses the class of an input from the probabilities, and limits how many classes an answer lists.

    Without thresholds, the most probable class is chosen. With thresholds, the choice is the most probable class that
    reaches its own threshold in `thresholds`. If there is none, the most probable class that is not in `thresholds` is
    chosen if it reaches `threshold`, and no class otherwise.

    Attributes:
        threshold: The minimum probability of a class that is not in `thresholds`.
        thresholds: The thresholds of individual classes.
        top_k: The number of most probable classes in an answer; None: all, in the order of the recipe.
    """

    threshold: float = 0.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    top_k: int | None = None

    def classify(self, probabilities: dict[str, float], *, truncated: bool = False) -> Classified:
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
        """Return the columns of a table of answers: the class, and all probabilities or (`top_k`) the best classes."""
        if self.top_k is None:
            return ("label", *(f"probability_{label}" for label in labels))
        ranks = range(1, min(self.top_k, len(labels)) + 1)
        return ("label", *(f"{what}_{rank}" for rank in ranks for what in ("label", "probability")))

    def cells(self, answer: Classified) -> dict[str, object]:
        cells: dict[str, object] = {"label": answer.label}
        for rank, (label, share) in enumerate(answer.probabilities.items(), start=1):
            if self.top_k is None:
                cells[f"probability_{label}"] = share
            else:
                cells |= {f"label_{rank}": label, f"probability_{rank}": share}
        return cells


def decision_of(thresholds: Sequence[str], top_k: int | None, labels: Sequence[str]) -> Decision:
    """Create a decision from thresholds such as "0.8" (for all classes) and "complaint=0.3" (for one class)."""
    # The threshold of all classes is stored under "", because `rpartition` returns an empty label for "0.8".
    values: dict[str, float] = {"": 0.0}
    for text in thresholds:
        label, separator, number = text.rpartition("=")
        if separator and label not in labels:
            raise InputError(f"--threshold {text}: {label!r} is not one of the classes {', '.join(labels)}")
        try:
            values[label] = float(number)
        except ValueError:
            # NaN fails the next check, which reports all bad numbers in the same way.
            values[label] = math.nan
        if not 0 <= values[label] <= 1:
            raise InputError(
                f"--threshold {text}: give a probability from 0 to 1, such as 0.8, or CLASS=0.3 for one class"
            )
    return Decision(values.pop(""), values, top_k)


class Classifier(TextPredictor[TextClassifier, Classified]):
    """Text classifier: a model trained to predict one of the classes in `data.labels`.

    Attributes:
        decision: How a class is chosen, such as by a threshold.
    """

    def __init__(self, model: TextClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.labels = data.labels
        self.decide_by(Decision())

    def decide_by(self, decision: Decision) -> None:
        """Set the rule by which classes are chosen, such as a threshold; the columns of tables depend on it."""
        self.decision = decision
        self.columns = decision.columns(self.labels)

    def cells(self, answer: Classified) -> dict[str, object]:
        return self.decision.cells(answer)

    def line(self, answer: Classified) -> str:
        return self.decision.line(answer)

    def options_of(self, answer: Classified) -> list[Option]:
        return answer.options()

    def answers(self, texts: Iterator[Text]) -> Iterator[Classified]:
        for row, logits in self.reader.read_with_rows(texts):
            shares = dict(zip(self.labels, logits.softmax(-1).tolist(), strict=True))
            yield self.decision.classify(shares, truncated=row.truncated)
