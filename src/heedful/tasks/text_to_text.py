"""Text to text: any task whose inputs and outputs are texts (Raffel et al. 2020, section 2.4)."""

from collections.abc import Sequence

from heedful.tasks.sequence_to_sequence import SequenceToSequence
from heedful.tasks.task import Scores


class TextToText(SequenceToSequence):
    """Pairs of a text and the one right answer."""

    scores = ("exact_match", "loss", "perplexity")
    means = ("exact_match",)

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """The share of outputs that are the right answer, word for word: how words are spaced does not count."""
        right = [output.split() == reference.split() for output, reference in zip(outputs, references, strict=True)]
        return {"exact_match": sum(right) / len(right)}
