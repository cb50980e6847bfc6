"""Dialogue task: learns to reply to previous turns (Vinyals & Le 2015, "A Neural Conversational Model")."""

from collections.abc import Iterator, Sequence

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import SentencePair
from heedful.data.readers.dialogues import read_replies
from heedful.data.readers.filters import DropReport
from heedful.evaluate.rouge import distinct_n, rouge_l
from heedful.tasks.sequence_to_sequence import SequenceToSequence
from heedful.tasks.task import Scores


class Dialogue(SequenceToSequence):
    """Dialogue task: examples are pairs of a context, its turns separated by tabs, and a reply."""

    scores = ("perplexity", "loss", "rougeL", "distinct_1", "distinct_2")
    means = ("rougeL",)

    @staticmethod
    def read(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None, /) -> Iterator[SentencePair]:
        """Read pairs of context and reply from a corpus of dialogues; see `heedful.data.readers.dialogues`."""
        return read_replies(corpus, data, report)

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score replies by ROUGE-L against the references and by diversity (distinct-n, Li et al. 2016), 0 to 1."""
        outputs, references = self.alike(outputs), self.alike(references)
        found = [rouge_l(*pair).f1 for pair in zip(outputs, references, strict=True)]
        return {
            "rougeL": sum(found) / len(found),
            "distinct_1": distinct_n(outputs, 1),
            "distinct_2": distinct_n(outputs, 2),
        }
