"""Options of the architecture "word2vec": word vectors by skip-gram or CBOW (Mikolov et al. 2013a, 2013b)."""

from dataclasses import dataclass
from typing import Literal

from heedful.config.schema import ArchitectureConfig


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig(ArchitectureConfig):
    """Settings of word2vec; the defaults are those of the authors' program, but for skip-gram instead of CBOW."""

    architecture: str = "word2vec"
    family: Literal["word_vectors"] = "word_vectors"
    d_model: int = 100  # size of the word vectors
    kind: Literal["skip_gram", "cbow"] = "skip_gram"  # skip_gram: a word predicts each word around it; cbow: reverse
    objective: Literal["negative_sampling", "hierarchical_softmax", "softmax"] = "negative_sampling"
    window: int = 5  # largest distance of a context word; the distance in use is drawn from 1 to window for each word
    negatives: int = 5  # negative samples of each predicted word
    noise_power: float = 0.75  # negative samples are drawn with probability count^noise_power
    subsample: float = 1e-3  # words above about 2.6 times this share of the text are thinned out; 0: none
    phrases: tuple[float, ...] = ()  # thresholds of passes that join pairs of words to phrases, such as [200.0, 100.0]
    phrase_discount: int = 5  # taken off the count of a pair, so that rare pairs form no phrases

    def shape(self) -> str:
        """Describe the model in words: kind, objective, size and window."""
        return f"{self.kind} with {self.objective}, vectors of size {self.d_model}, window {self.window}"
