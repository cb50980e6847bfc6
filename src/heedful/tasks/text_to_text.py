"""Tasks from a text to a text: translation, summarisation, dialogue, and any other. They differ in data and metrics."""

from collections.abc import Iterator

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import SentencePair, read_replies
from heedful.data.readers.filters import DropReport
from heedful.tasks.parts.sequence_to_sequence import Pairs, SequenceToSequence


class Translation(SequenceToSequence):
    """Translation task on pairs of a sentence and its translation (Vaswani et al. 2017)."""

    command = "heedful translate"
    metrics = ("bleu", "loss", "perplexity")


class Summarisation(SequenceToSequence):
    """Summarisation task on pairs of a text and its summary, scored by ROUGE (Lin 2004)."""

    metrics = ("rougeL", "rouge1", "rouge2", "loss", "perplexity")


class TextToText(SequenceToSequence):
    """Text-to-text task on pairs of an input and the one right output (Raffel et al. 2020, section 2.4)."""

    metrics = ("exact_match", "loss", "perplexity")


class Replies(Pairs):
    """Pairs of a context, its turns separated by tabs, and a reply."""

    @staticmethod
    def read(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None, /) -> Iterator[SentencePair]:
        return read_replies(corpus, data, report)


class Dialogue(SequenceToSequence):
    """Dialogue task (Vinyals & Le 2015), scored by ROUGE-L and by the variety of replies (distinct-n)."""

    dataset = Replies
    metrics = ("perplexity", "loss", "rougeL", "distinct_1", "distinct_2")
