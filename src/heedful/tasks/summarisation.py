"""Summarisation task: learns a short summary of a text, scored by ROUGE (Lin 2004)."""

from heedful.tasks.parts.sequence_to_sequence import SequenceToSequence


class Summarisation(SequenceToSequence):
    """Summarisation task: examples are pairs of a text and its summary."""

    metrics = ("rougeL", "rouge1", "rouge2", "loss", "perplexity")
