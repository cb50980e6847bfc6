"""Summarisation: a text to a shorter one that says what matters (Lin 2004 for the scores)."""

from collections.abc import Sequence

from heedful.evaluate.rouge import rouge_l, rouge_n
from heedful.tasks.sequence_to_sequence import SequenceToSequence
from heedful.tasks.task import Scores


class Summarisation(SequenceToSequence):
    """Pairs of a text and its summary."""

    scores = ("rougeL", "rouge1", "rouge2", "loss", "perplexity")
    means = ("rougeL", "rouge1", "rouge2")

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """The mean F1 of words, of pairs of words and of the longest common subsequence, from 0 to 1."""
        pairs = list(zip(outputs, references, strict=True))
        tallies = {
            "rouge1": [rouge_n(*pair, 1) for pair in pairs],
            "rouge2": [rouge_n(*pair, 2) for pair in pairs],
            "rougeL": [rouge_l(*pair) for pair in pairs],
        }
        return {name: sum(tally.f1 for tally in found) / len(found) for name, found in tallies.items()}
