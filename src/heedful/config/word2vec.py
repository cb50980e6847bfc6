"""Options of the architecture "word2vec": word vectors by skip-gram or CBOW (Mikolov et al. 2013a, 2013b)."""

from dataclasses import dataclass
from typing import Literal

from heedful.config.model import ArchitectureConfig, Width
from heedful.config.setting import Count, Natural, NonNegative


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig(ArchitectureConfig):
    """Settings of word2vec; the defaults are those of the authors' program, but for skip-gram instead of CBOW."""

    architecture: str = "word2vec"
    family: Literal["word_vectors"] = "word_vectors"
    d_model: Width = 100
    """Size of the word vectors."""

    kind: Literal["skip_gram", "cbow"] = "skip_gram"
    """`skip_gram`: a word predicts each word around it; `cbow`: the words around it predict the word."""

    objective: Literal["negative_sampling", "hierarchical_softmax", "softmax"] = "negative_sampling"
    """How the probability of a word is learned."""

    window: Count = 5
    """Largest distance of a context word. The distance in use is drawn from 1 to `window` for each word."""

    negatives: Count = 5
    """Negative samples for each predicted word."""

    noise_power: NonNegative = 0.75
    """Negative samples are drawn with probability count^noise_power."""

    subsample: NonNegative = 1e-3
    """Share of the text above which frequent words are subsampled: from about 2.6 times this share. 0 keeps all."""

    phrases: tuple[float, ...] = ()
    """Thresholds of the passes that join pairs of words to phrases, such as `[200.0, 100.0]`. Empty: no phrases."""

    phrase_discount: Natural = 5
    """Number subtracted from the count of a pair, so that rare pairs do not form phrases."""

    def shape(self) -> str:
        """Describe the model in words: kind, objective, size and window."""
        return f"{self.kind} with {self.objective}, vectors of size {self.d_model}, window {self.window}"
