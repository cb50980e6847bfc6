"""Everything that can be configured, as frozen typed dataclasses. Plain values only: no torch, nothing of ours.

A recipe is one TOML file whose tables are the fields of `Recipe`. Each field is documented by the comment beside it;
`heedful config schema` prints the same as JSON Schema.
"""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """One parallel corpus: two plain files, or one TSV or JSONL file. Any of them may end in .gz."""

    source: str  # a text file with one sentence a line; or, without `target`, a .tsv or .jsonl file with both sides
    target: str | None = None
    source_field: str = "source"  # JSONL: the key of the source text; TSV: a column name or a number from 1
    target_field: str = "target"
    weight: float = 1.0  # each epoch draws weight x size sentence pairs: 2.0 shows every pair twice


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Which training pairs are dropped, counted and reported. Validation and test text is never filtered."""

    max_characters: int = 2000  # longer lines on either side are dropped before they are encoded
    max_tokens: int = 250  # longer sentences on either side, in tokens with <eos>
    max_ratio: float = 9.0  # (tokens of the longer side) / (tokens of the shorter side)
    duplicates: bool = False  # keep exact duplicates of a pair
    source_script: Literal["latin", "cyrillic", "greek", "arabic", "hebrew", "han", "kana", "hangul"] | None = None
    target_script: Literal["latin", "cyrillic", "greek", "arabic", "hebrew", "han", "kana", "hangul"] | None = None


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Parallel text. Relative paths start at `root`, and a relative `root` starts at the recipe's folder."""

    root: str = "."
    source_language: str = "src"
    target_language: str = "tgt"
    train: tuple[CorpusConfig, ...] = ()
    valid: CorpusConfig | None = None
    test: CorpusConfig | None = None
    filters: FilterConfig = field(default_factory=FilterConfig)
    bad_utf8: Literal["error", "skip", "replace"] = "error"


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """Text to ids. Special tokens are fixed: <pad> 0, <unk> 1, <bos> 2, <eos> 3."""

    kind: Literal["word", "character", "byte", "bpe", "unigram", "wordpiece"] = "bpe"
    vocab_size: int = 8000  # an upper bound, special tokens included
    joint: bool = True  # one vocabulary for both languages
    lowercase: bool = False
    normalization: Literal["none", "nfc", "nfkc"] = "none"  # "none" keeps decode(encode(text)) == text
    byte_fallback: bool = True  # spell characters outside the vocabulary as bytes instead of <unk>
    pretokenized: bool = False  # the text is already tokenized: words end at spaces only
    dropout: float = 0.0  # BPE dropout while training (Provilkov et al. 2020)
    path: str | None = None  # a trained tokenizer folder, below data.root, to use instead of training one


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The model of "Attention Is All You Need" (Vaswani et al. 2017, section 3); the defaults are its base model."""

    d_model: int = 512
    d_ff: int = 2048
    heads: int = 8
    kv_heads: int | None = None  # grouped heads: key and value heads shared by heads / kv_heads queries; None: heads
    d_k: int | None = None  # None: d_model / heads
    d_v: int | None = None  # None: d_k
    encoder_layers: int = 6
    decoder_layers: int = 6
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "relative", "none"] = "sinusoidal"
    max_positions: int = 1024  # size of the learned table; the other schemes have no limit
    norm: Literal["post", "pre"] = "post"  # post: LayerNorm(x + f(x)), the paper's; pre: x + f(LayerNorm(x))
    normalization: Literal["layer", "rms"] = "layer"  # rms: no mean taken off and no bias (Zhang & Sennrich 2019)
    norm_eps: float = 1e-5
    activation: Literal["relu", "gelu", "swiglu"] = "relu"  # swiglu: a third matrix gates d_ff values (Shazeer 2020)
    attention_bias: bool = True  # biases on the q, k, v and output projections
    dropout: float = 0.1  # on each sublayer's output and on embedding + position (section 5.4)
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    tie: Literal["all", "output", "none"] = "all"  # all: source, target and output share one matrix (section 3.4)
    source_vectors: str | None = None  # word vectors to begin with, below data.root: word2vec or GloVe, text or binary
    target_vectors: str | None = None
    freeze_vectors: bool = False


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Adam and the learning rate over time. Steps are counted from 1."""

    name: Literal["adam", "adamw"] = "adam"
    lr: float = 1.0  # peak rate; with schedule = "vaswani" a factor on the paper's formula
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
    schedule: Literal["vaswani", "inverse_sqrt", "cosine", "linear", "constant"] = "vaswani"
    warmup: int = 4000  # updates
    min_lr: float = 0.0  # where cosine and linear end, at max_updates
    clip_norm: float = 0.0  # largest gradient norm; 0: no clipping


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The training loop. Everything counted in updates is absolute: a resumed run ends where the whole run would."""

    seed: int = 1
    max_updates: int = 100_000
    max_epochs: int | None = None
    batch_tokens: int = 4096  # sentences x the longest side of the batch, padding included
    accumulate: int = 1  # batches per update
    label_smoothing: float = 0.1
    precision: Literal["float32", "bfloat16", "autocast"] = "float32"  # bfloat16: with float32 master weights
    compile: bool = False
    device: str = "auto"
    threads: int | None = None  # None: what torch chooses
    validate_every: int = 1000  # updates
    validate_bleu: bool = True  # decode the validation set greedily and score it
    best: Literal["bleu", "loss"] = "bleu"  # what the best checkpoint is best in
    patience: int | None = None  # stop after this many validations without a better one
    save_every: int = 1000  # updates
    save_minutes: float = 10.0  # and at least this often
    keep_last: int = 3
    average_last: int = 1  # the final model is the mean of this many last checkpoints, made at each validation
    log_every: int = 50  # updates
    tensorboard: bool = False


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """Search. A hypothesis scores log P(y|x) / penalty(|y|), |y| with <eos>."""

    beam: int = 4  # 1: greedy
    penalty: Literal["gnmt", "average"] = "gnmt"  # gnmt: ((5 + |y|) / 6)^alpha (Wu et al. 2016); average: |y|^alpha
    alpha: float = 0.6
    n_best: int = 1
    max_extra: int = 50  # longest output: source length + max_extra tokens
    batch_tokens: int = 4096  # source tokens x beam in one batch; changes speed and memory, never results


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole run: what `heedful train` reads, and what it stores with the model once everything is resolved."""

    name: str = "heedful"
    task: Literal["translation"] = "translation"
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
