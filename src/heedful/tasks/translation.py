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
        """Score translations by SacreBLEU, from 0 to 100; in lower case if the model learns lower-cased text."""
        lowercase = self.tokenizers.target.config.lowercase
        scoring = Scoring(metrics=("bleu",), language=self.recipe.data.target_language, lowercase=lowercase)
        return {"bleu": score(self.alike(outputs), [self.alike(references)], scoring)[0].value}
