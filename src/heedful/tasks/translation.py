"""Translation task: learns to translate sentences from one language to another (Vaswani et al. 2017)."""

from collections.abc import Sequence

from heedful.evaluate import Scoring, score
from heedful.tasks.sequence_to_sequence import SequenceToSequence
from heedful.tasks.task import Scores


class Translation(SequenceToSequence):
    """Translation task on pairs of a sentence and its translation; `SequenceToSequence` builds and uses the model."""

    command = "heedful translate"
    scores = ("bleu", "loss", "perplexity")

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score translations by SacreBLEU, from 0 to 100."""
        scoring = Scoring(metrics=("bleu",), language=self.recipe.data.target_language)
        return {"bleu": score(outputs, [references], scoring)[0].value}
