"""Text-to-text task: pairs of an input text and the one right output text (Raffel et al. 2020, section 2.4)."""

from heedful.tasks.parts.sequence_to_sequence import SequenceToSequence


class TextToText(SequenceToSequence):
    """Text-to-text task, scored by the share of outputs that are right word for word."""

    metrics = ("exact_match", "loss", "perplexity")
