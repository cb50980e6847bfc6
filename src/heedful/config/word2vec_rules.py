"""Rules for recipes of word vectors, whose updates change only the rows of a batch's words."""

from heedful.config.rule import Rule
from heedful.config.word2vec import Word2VecConfig

RULES = (
    Rule(
        "model.phrases",
        lambda r: isinstance(r.model, Word2VecConfig) and any(threshold <= 0 for threshold in r.model.phrases),
        "model.phrases lists scores that a phrase exceeds, one for each pass over the text; give numbers above 0, such "
        "as [200.0, 100.0]",
    ),
    Rule(
        "model.source_vectors",
        lambda r: bool(r.model.source_vectors or r.model.target_vectors),
        "word vectors begin with random numbers here; leave model.source_vectors and model.target_vectors out",
    ),
    Rule(
        "optimizer.name",
        lambda r: r.optimizer.name != "row_sgd",
        'word vectors get gradients for the words of a batch only, which optimizer.name = "{r.optimizer.name}" does '
        'not take; set optimizer.name = "row_sgd"',
    ),
    Rule(
        "tokenizer.kind",
        lambda r: r.tokenizer.kind != "word" or r.tokenizer.byte_fallback,
        'word vectors belong to words; set tokenizer.kind = "word" and tokenizer.byte_fallback = false',
    ),
    Rule(
        "train.precision",
        lambda r: r.train.precision != "float32",
        'word vectors are computed in float32, and train.precision is "{r.train.precision}"; leave it out',
    ),
    Rule(
        "train.label_smoothing",
        lambda r: r.train.label_smoothing > 0,
        "word vectors are learned without label smoothing; set train.label_smoothing = 0.0",
    ),
)

REMARKS = (
    Rule(
        "model.negatives",
        lambda r: (
            isinstance(r.model, Word2VecConfig)
            and r.model.objective != "negative_sampling"
            and (r.model.negatives, r.model.noise_power) != (Word2VecConfig.negatives, Word2VecConfig.noise_power)
        ),
        "model.negatives and model.noise_power belong to negative sampling: with model.objective = "
        '"{r.model.objective}" they change nothing',
    ),
    Rule(
        "model.phrase_discount",
        lambda r: (
            isinstance(r.model, Word2VecConfig)
            and not r.model.phrases
            and r.model.phrase_discount != Word2VecConfig.phrase_discount
        ),
        "model.phrase_discount belongs to model.phrases: without phrases it changes nothing",
    ),
)
