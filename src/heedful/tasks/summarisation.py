"""Summarisation task: learns a short summary of a text, scored by ROUGE (Lin 2004)."""

from collections.abc import Sequence

from heedful.evaluate.rouge import rouge_l, rouge_n
from heedful.tasks.sequence_to_sequence import SequenceToSequence
from heedful.tasks.task import Scores


class Summarisation(SequenceToSequence):
    """Summarisation task: examples are pairs of a text and its summary."""

    scores = ("rougeL", "rouge1", "rouge2", "loss", "perplexity")
    means = ("rougeL", "rouge1", "rouge2")

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score summaries by mean ROUGE F1: words, word pairs and longest common subsequence, from 0 to 1."""
        pairs = list(zip(self.alike(outputs), self.alike(references), strict=True))
        tallies = {
            "rouge1": [rouge_n(*pair, 1) for pair in pairs],
            "rouge2": [rouge_n(*pair, 2) for pair in pairs],
            "rougeL": [rouge_l(*pair) for pair in pairs],
        }
        return {name: sum(tally.f1 for tally in found) / len(found) for name, found in tallies.items()}
