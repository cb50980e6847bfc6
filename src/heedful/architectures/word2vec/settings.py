"""word2vec settings and their rules: word vectors with skip-gram or CBOW (Mikolov et al. 2013a, 2013b)."""

from dataclasses import dataclass
from typing import Literal, cast

from heedful.config.keys import KEYS
from heedful.config.model import ArchitectureConfig, Width
from heedful.config.rules import REMARKS, RULES, Rule
from heedful.config.schema import Recipe
from heedful.config.setting import Count, Natural, NonNegative


@dataclass(frozen=True, kw_only=True)
class Word2VecConfig(ArchitectureConfig):
    """word2vec settings; the defaults are those of the authors' program, except that skip-gram replaces CBOW."""

    architecture: str = "word2vec"
    family: Literal["word_vectors"] = "word_vectors"
    d_model: Width = 100
    """Size of the word vectors."""

    kind: Literal["skip_gram", "cbow"] = "skip_gram"
    """`skip_gram`: a word predicts each word around it; `cbow`: the words around it predict the word."""

    objective: Literal["negative_sampling", "hierarchical_softmax", "softmax"] = "negative_sampling"
    """How the probability of a word is learned."""

    window: Count = 5
    """Maximum distance of a context word. For each word, the actual distance is sampled from 1 to `window`."""

    negatives: Count = 5
    """Negative samples for each predicted word."""

    noise_power: NonNegative = 0.75
    """Negative samples are drawn with a probability proportional to count^noise_power."""

    subsample: NonNegative = 1e-3
    """Threshold of subsampling: words that make up more than about 2.6 times this share of the text are sometimes left
    out, the more frequent ones more often. 0 keeps all."""

    phrases: tuple[float, ...] = ()
    """Thresholds of the passes that join word pairs into phrases, such as `[200.0, 100.0]`. Empty: no phrases."""

    phrase_discount: Natural = 5
    """Number subtracted from the count of a pair, so that rare pairs do not form phrases."""

    def shape(self) -> str:
        return f"{self.kind} with {self.objective}, vectors of size {self.d_model}, window {self.window}"


def word_vectors(recipe: Recipe) -> Word2VecConfig:
    return cast("Word2VecConfig", recipe.model)


RULES[Word2VecConfig] = (
    Rule(
        word_vectors(KEYS).phrases,
        lambda r: any(threshold <= 0 for threshold in word_vectors(r).phrases),
        "model.phrases lists the score that a phrase must exceed in each pass over the text; give numbers above 0, "
        "such as [200.0, 100.0]",
    ),
    Rule(
        KEYS.model.source_vectors,
        lambda r: bool(r.model.source_vectors or r.model.target_vectors),
        "word2vec starts from random vectors; leave model.source_vectors and model.target_vectors out",
    ),
    Rule(
        KEYS.optimizer.name,
        lambda r: r.optimizer.name != "row_sgd",
        'word vectors get gradients only for the words of a batch, which optimizer.name = "{r.optimizer.name}" does '
        'not support; set optimizer.name = "row_sgd"',
    ),
    Rule(
        KEYS.tokenizer.kind,
        lambda r: r.tokenizer.kind != "word" or r.tokenizer.byte_fallback,
        'word vectors are for whole words; set tokenizer.kind = "word" and tokenizer.byte_fallback = false',
    ),
    Rule(
        KEYS.train.precision,
        lambda r: r.train.precision != "float32",
        'word vectors are trained in float32, but train.precision is "{r.train.precision}"; leave it out',
    ),
    Rule(
        KEYS.train.label_smoothing,
        lambda r: r.train.label_smoothing > 0,
        "word vectors are learned without label smoothing; set train.label_smoothing = 0.0",
    ),
)

REMARKS[Word2VecConfig] = (
    Rule(
        word_vectors(KEYS).negatives,
        lambda r: (
            word_vectors(r).objective != "negative_sampling"
            and (word_vectors(r).negatives, word_vectors(r).noise_power)
            != (Word2VecConfig.negatives, Word2VecConfig.noise_power)
        ),
        "model.negatives and model.noise_power belong to negative sampling: with model.objective = "
        '"{r.model.objective}" they have no effect',
    ),
    Rule(
        word_vectors(KEYS).phrase_discount,
        lambda r: not word_vectors(r).phrases and word_vectors(r).phrase_discount != Word2VecConfig.phrase_discount,
        "model.phrase_discount belongs to model.phrases: without phrases it has no effect",
    ),
)
