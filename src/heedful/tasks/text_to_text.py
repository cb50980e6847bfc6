"""Text-to-text tasks, which differ in data and metrics: translation, summarisation, dialogue and a general task."""

from heedful.tasks.parts.sequence_to_sequence import Pairs, SequenceToSequence
from heedful.tasks.readers.texts import ReplyReader
from heedful.tasks.specs import SPECS


class Translation(SequenceToSequence):
    """Translation task on pairs of a sentence and its translation (Vaswani et al. 2017)."""

    spec = SPECS["translation"]


class Summarisation(SequenceToSequence):
    """Summarisation task on pairs of a text and its summary, scored by ROUGE (Lin 2004)."""

    spec = SPECS["summarisation"]


class TextToText(SequenceToSequence):
    """General text-to-text task on pairs of an input and its only correct output (Raffel et al. 2020, section 2.4)."""

    spec = SPECS["text_to_text"]


class Replies(Pairs):
    """Pairs of a context, whose turns are separated by tabs, and a reply."""

    reader = ReplyReader


class Dialogue(SequenceToSequence):
    """Dialogue task (Vinyals & Le 2015), scored by perplexity, ROUGE-L and the variety of replies (distinct-n)."""

    spec = SPECS["dialogue"]
    dataset = Replies
