"""Text-to-text task: any task whose inputs and outputs are texts (Raffel et al. 2020, section 2.4)."""

from collections.abc import Sequence

from heedful.tasks.sequence_to_sequence import SequenceToSequence
from heedful.tasks.task import Scores


class TextToText(SequenceToSequence):
    """Text-to-text task: examples are pairs of an input text and the one right output text."""

    scores = ("exact_match", "loss", "perplexity")
    means = ("exact_match",)

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score outputs by exact match: the share equal to the reference, word for word, ignoring spaces."""
        right = [output.split() == reference.split() for output, reference in zip(outputs, references, strict=True)]
        return {"exact_match": sum(right) / len(right)}
