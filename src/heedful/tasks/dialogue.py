"""Dialogue task: learns to reply to previous turns (Vinyals & Le 2015, "A Neural Conversational Model")."""

from collections.abc import Iterator

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import SentencePair
from heedful.data.readers.dialogues import read_replies
from heedful.data.readers.filters import DropReport
from heedful.tasks.parts.sequence_to_sequence import Pairs, SequenceToSequence


class Replies(Pairs):
    """Pairs of a context, its turns separated by tabs, and a reply."""

    @staticmethod
    def read(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None, /) -> Iterator[SentencePair]:
        """Read pairs of context and reply from a corpus of dialogues; see `heedful.data.readers.dialogues`."""
        return read_replies(corpus, data, report)


class Dialogue(SequenceToSequence):
    """Dialogue task: replies are scored by ROUGE-L and by their diversity (distinct-n, Li et al. 2016)."""

    dataset = Replies
    metrics = ("perplexity", "loss", "rougeL", "distinct_1", "distinct_2")
