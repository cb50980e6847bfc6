"""Translation task: learns to translate sentences from one language to another (Vaswani et al. 2017)."""

from heedful.tasks.parts.sequence_to_sequence import SequenceToSequence


class Translation(SequenceToSequence):
    """Translation task on pairs of a sentence and its translation; `SequenceToSequence` builds and uses the model."""

    command = "heedful translate"
    metrics = ("bleu", "loss", "perplexity")
