"""Schema of recipes: every configuration key as frozen, typed dataclasses of plain values, without torch.

A recipe is one TOML file whose tables are the fields of `Recipe`. Each field is documented by the comment beside it;
`heedful config schema` prints the same as JSON Schema.
"""

from dataclasses import dataclass, field
from typing import Literal

from heedful.config.families import FAMILIES, FamilyName
from heedful.config.modalities import AudioConfig, ImageConfig, TranscribeConfig, VideoConfig
from heedful.wording import counted

Poolings = Literal["first", "mean", "max", "last", "sum"]
Poolers = Literal["dense", "attention", "none"]
Shardings = Literal["none", "full", "hybrid"]
Modality = Literal["text", "image", "audio", "video"]

EXTRA = 50  # the least decode.max_extra that training chooses, and what it is where nothing was measured


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Settings of a corpus: plain text, two files line by line, or one TSV, CSV or JSONL file; plain, .gz, .bz2 or .xz.

    Of pictures, sounds or videos: a folder with a folder for each class, or a table with the place of each file.
    """

    source: str  # a text file; or, without `target`, a .tsv, .csv or .jsonl file with all sides; GPT, BERT: or a folder
    target: str | None = None
    source_field: str = "source"  # of the source text or file. JSONL: a key; TSV, CSV: a column name or number from 1
    pair_field: str | None = None  # that of a second text: tasks on sentence pairs
    target_field: str = "target"  # that of the target text, or of the label
    part: tuple[float, float] = (0.0, 1.0)  # the share to read, from and to, of its lines, articles or characters
    weight: float = 1.0  # each epoch draws weight x size examples: 2.0 shows every one twice


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Settings of the filters that drop training pairs, with a report. Validation and test text is never filtered."""

    max_characters: int = 2000  # longer lines on either side are dropped before they are encoded
    max_tokens: int = 250  # longer sentences on either side, in tokens with <eos>
    max_ratio: float | None = 9.0  # (tokens of the longer side) / (tokens of the shorter); of translations only
    duplicates: bool = False  # keep exact duplicates of a pair
    source_script: Literal["latin", "cyrillic", "greek", "arabic", "hebrew", "han", "kana", "hangul"] | None = None
    target_script: Literal["latin", "cyrillic", "greek", "arabic", "hebrew", "han", "kana", "hangul"] | None = None


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Settings of the data. Relative paths start at `root`, and a relative `root` starts at the recipe's folder."""

    root: str = "."
    modality: Modality = "text"  # what a model reads: text, pictures, sound or videos; the task sets it
    labelled: bool = True  # pictures, sounds or videos have a class or a text each; the task sets it
    source_language: str = "src"  # a code of ISO 639, such as en or zh-Hant; src and tgt: not said
    target_language: str = "tgt"  # decides how scores cut outputs into words
    train: tuple[CorpusConfig, ...] = ()
    valid: CorpusConfig | None = None
    test: CorpusConfig | None = None
    filters: FilterConfig = field(default_factory=FilterConfig)
    max_length: int = 512  # tokens that a model of one text reads at once: the context of a language model
    documents: Literal["file", "section", "paragraph", "line"] = "file"  # section: up to two blank lines or more
    cross_documents: bool = True  # let attention cross the documents that are packed into one sequence
    labels: tuple[str, ...] = ()  # the classes or tags, in order; none: those of the training data
    label_mean: float | None = None  # regression learns (number - label_mean) / label_scale; none: of the training data
    label_scale: float | None = None  # the standard deviation; 1.0 with label_mean = 0.0: numbers as they are
    words: tuple[str, ...] = ()  # words that a tagger keeps whole in a text; none: those of the training data
    bad_utf8: Literal["error", "skip", "replace"] = "error"
    bad_files: Literal["error", "skip", "skip_all"] = "error"  # that cannot be read; skip: in training only
    truncated_files: Literal["error", "read"] = "error"  # sounds and images that are cut off; read: what is there


@dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """Settings of the masking for a masked language model (Devlin et al. 2019, section 3.1 and appendix A.1).

    Masked patches (He et al. 2022) have a rate only.
    """

    rate: float = 0.15  # of the tokens of a sequence are chosen, to be predicted; of the patches of a picture: 0.75
    mask: float = 0.8  # of those chosen become <mask>
    random: float = 0.1  # become a random token; the rest stay as they are
    whole_words: bool = False  # choose words, all pieces of each, instead of pieces
    next_sentence: bool = True  # sequences are pairs of passages, half of them neighbours, and which is learned too
    short: float = 0.1  # of the sequences have a random, shorter length


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """Settings of the tokenizer. Special tokens are fixed: <pad> 0, <unk> 1, <bos> 2, <eos> 3, with `mask` <mask> 4.

    In terms of BERT, <bos> is [CLS] and <eos> is [SEP].
    """

    # "foreign" is a converted one: `path` names it, and it cannot be trained.
    kind: Literal["word", "character", "byte", "bpe", "unigram", "wordpiece", "foreign"] = "bpe"
    vocab_size: int = 8000  # an upper bound, special tokens included
    joint: bool = True  # one vocabulary for both languages
    lowercase: bool = False
    normalization: Literal["none", "nfc", "nfkc"] = "none"  # "none" keeps decode(encode(text)) == text
    byte_fallback: bool = True  # spell characters outside the vocabulary as bytes instead of <unk>
    pretokenized: bool = False  # the text is already tokenized: words end at spaces only
    mask: bool = False  # reserve <mask>, which masked language models need
    dropout: float = 0.0  # BPE dropout while training (Provilkov et al. 2020)
    path: str | None = None  # a trained tokenizer folder, below data.root, to use instead of training one


@dataclass(frozen=True, kw_only=True)
class ArchitectureConfig:
    """Settings that a model of any architecture has."""

    architecture: str = (
        "transformer"  # recurrent, convolutional, text_cnn, bag_of_words, word2vec, dual_encoder; or own
    )
    family: FamilyName = "encoder_decoder"  # encoder: BERT; decoder: GPT; word_vectors: word2vec
    d_model: int = 512  # size of embeddings and hidden states
    source_vectors: str | None = None  # word vectors to begin with, below data.root: word2vec or GloVe, text or binary
    target_vectors: str | None = None
    freeze_vectors: bool = False

    @property
    def learned_positions(self) -> int | None:
        """The size of a table of learned positions, which limits the length of a text; None without such a table."""
        return None

    @property
    def learned_target_positions(self) -> int | None:
        """The size of a decoder's table of learned positions, which limits an output; None without such a table."""
        return self.learned_positions

    @property
    def one_vocabulary(self) -> bool:
        """True if a source and a target share one matrix of embeddings, and so one vocabulary."""
        return False

    def shape(self) -> str:
        """Describe the shape of the model in words, for `heedful info`."""
        return ", ".join(f"{key} {value}" for key, value in vars(self).items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class TextModelConfig(ArchitectureConfig):
    """Settings that all architectures for text that come with heedful have."""

    dropout: float = 0.1  # on embeddings (with positions) and on the output of each sublayer (section 5.4) or layer
    tie: Literal["all", "output", "none"] = "all"  # all: source, target and output share one matrix (section 3.4)
    output_bias: bool = False  # a bias for each token of the output vocabulary
    scale_embeddings: bool = True  # token vectors times sqrt(d_model) (section 3.4)
    segments: int = 0  # kinds of text in one sequence that have a trained vector each; BERT: 2
    init: Literal["glorot", "normal", "scaled"] = "glorot"  # normal: N(0, 0.02), BERT's; scaled: GPT-2's
    pooling: Poolings | None = None  # None: encoder first, decoder last, ranking mean; other architectures have others
    # before a classifier's output; dense: tanh(W x + b), BERT's; attention: a learned mean, in place of `pooling`
    pooler: Poolers = "dense"

    @property
    def one_vocabulary(self) -> bool:
        """True if a source and a target share one matrix of embeddings, and so one vocabulary."""
        return self.tie == "all"

    @property
    def hidden_size(self) -> int:
        """The size of the hidden states that a classifier reads."""
        return self.d_model


@dataclass(frozen=True, kw_only=True)
class ModelConfig(TextModelConfig):
    """Settings of a Transformer; the defaults are the base model of Vaswani et al. (2017)."""

    d_ff: int = 2048  # size of the feed-forward network
    heads: int = 8  # attention heads
    kv_heads: int | None = None  # grouped heads: key and value heads shared by heads / kv_heads queries; None: heads
    d_k: int | None = None  # None: d_model / heads
    d_v: int | None = None  # None: d_k
    encoder_layers: int = 6
    decoder_layers: int = 6
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "relative", "none"] = "sinusoidal"
    max_positions: int = 1024  # size of the learned table; the other schemes have no limit
    max_target_positions: int | None = None  # of the decoder's own learned table; None: max_positions
    norm: Literal["post", "pre"] = "post"  # post: LayerNorm(x + f(x)), the paper's; pre: x + f(LayerNorm(x))
    normalization: Literal["layer", "rms"] = "layer"  # rms: no mean taken off and no bias (Zhang & Sennrich 2019)
    norm_eps: float = 1e-5
    # gelu_tanh: GPT-2's; quick_gelu: CLIP's; swiglu: gated
    activation: Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "swiglu"] = "relu"
    attention_bias: bool = True  # biases on the q, k, v and output projections
    bias: bool = True  # biases in feed-forward networks and norms
    source_eos: bool = True  # the encoder sees the <eos> of a source; in OpenNMT's models it sees none
    embedding_norm: bool = False  # a norm on embedding + position, as BERT has
    attention_dropout: float = 0.0  # on attention weights
    activation_dropout: float = 0.0  # inside feed-forward networks

    @property
    def learned_positions(self) -> int | None:
        """The size of the table of learned positions, which limits the length of a text; None for other schemes."""
        return self.max_positions if self.positions == "learned" else None

    @property
    def learned_target_positions(self) -> int | None:
        """The size of the decoder's table of learned positions; None for other schemes."""
        return self.learned_positions and (self.max_target_positions or self.max_positions)

    @property
    def head_size(self) -> int:
        """The size of the queries and keys of an attention head."""
        return self.d_k or self.d_model // self.heads

    def shape(self) -> str:
        """Describe the shape of a Transformer in words: layers, sizes, attention heads and the place of its norms."""
        values = "" if self.d_v in (None, self.head_size) else f" (values {self.d_v})"
        numbers = [getattr(self, key) for key in FAMILIES[self.family].layers]
        layers = "+".join(map(str, numbers)) + " layers" if len(numbers) > 1 else counted(numbers[0], "layers")
        return (
            f"{layers}, d_model {self.d_model}, d_ff {self.d_ff}, "
            f"{counted(self.heads, 'heads')} of {self.head_size}{values}, {self.norm}-norm"
        )


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Settings of the optimiser and the learning-rate schedule. Steps are counted from 1."""

    name: Literal["adam", "adamw", "muon", "row_sgd"] = "adam"  # muon: orthogonal in stacks; row_sgd: word vectors
    lr: float = 1.0  # peak rate; with schedule = "vaswani" a factor on the paper's formula
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0  # of matrices; biases and the weights of norms do not decay
    schedule: Literal["vaswani", "inverse_sqrt", "cosine", "linear", "constant"] = "vaswani"
    warmup: int = 4000  # updates in which the learning rate rises
    min_lr: float = 0.0  # where cosine and linear end, with the limit that ends the run first
    clip_norm: float = 0.0  # gradient clipping: the largest gradient norm; 0: none


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of the training loop. Numbers of updates count from the start of the run, also when it is resumed."""

    seed: int = 1  # random seed
    start: str | None = None  # warm start: a model folder or a run to begin with, its shape and tokenizer too
    start_decoder: str | None = None  # a language model to begin the decoder of a translator with
    freeze: tuple[str, ...] = ()  # weights that are not trained: how their names begin, such as "backbone.embedding"
    vocabulary: Literal["keep", "extend", "remap"] | None = None  # what to do if its vocabulary is not the recipe's
    max_updates: int = 100_000  # training steps
    max_epochs: int | None = None  # passes over the training data
    max_minutes: float | None = None  # of training, validation not counted; a slower machine ends after fewer updates
    batch_tokens: int = 4096  # batch size: sentences x the longest side of the batch, padding included
    accumulate: int = 1  # gradient accumulation: batches per update
    label_smoothing: float = 0.1  # label smoothing, part of every loss that is shown; perplexity is without it
    class_weights: Literal["balanced"] | dict[str, float] | None = None  # of classes in the loss; balanced: all alike
    # mixed precision. auto: bfloat16 where the hardware computes it, else float32; bfloat16: float32 master weights
    precision: Literal["auto", "float32", "bfloat16", "autocast"] = "auto"
    compile: bool = False
    activation_checkpointing: bool = False  # compute blocks again in the backward pass: less memory, the same result
    device: str = "auto"
    threads: int | None = None  # of each process; None: what torch chooses, and no more than there are cores
    workers: int | None = None  # that read batches ahead; None: for pictures and sounds on a GPU one per core, else 0
    validate_every: int = 1000  # updates
    validate_decoding: bool = True  # decode the validation set greedily and score it
    best: str | None = None  # the score that the best checkpoint has the best of; None: the first that the task names
    patience: int | None = None  # early stopping: after this many validations without a better one
    save_every: int = 1000  # updates
    save_minutes: float = 10.0  # and at least this often
    keep_last: int = 3
    average_last: int = 1  # checkpoint averaging: the final model is their mean, unless one is clearly better
    log_every: int = 50  # updates
    tensorboard: bool = False


@dataclass(frozen=True, kw_only=True)
class ParallelConfig:
    """Settings of training in several processes, on one machine or on many. No result depends on them."""

    timeout_minutes: float = 10.0  # how long processes wait for one that does not answer before the training ends
    shard: Shardings = "none"  # full: over all processes (FSDP2); hybrid: of a machine (HSDP)
    shard_processes: int | None = None  # with hybrid: processes that hold a copy together; None: those of a machine


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """Settings of decoding by beam search. A hypothesis scores log P(y|x) / penalty(|y|), where |y| counts <eos>."""

    beam: int = 4  # beam size; 1: greedy search
    # gnmt: ((5 + |y|) / 6)^alpha (Wu et al. 2016); average: |y|^alpha; average_text: (|y| - 1)^alpha, Whisper's
    penalty: Literal["gnmt", "average", "average_text"] = "gnmt"
    alpha: float = 0.6  # strength of the length penalty
    n_best: int = 1  # translations of each text in JSON and from translate_lines; plain output is the best of them
    patience: float = 1.0  # done with patience x beam finished hypotheses (Kasai et al. 2022); 0: none live can win
    max_extra: int | None = None  # longest output: source length + max_extra tokens; None: what training texts need
    batch_tokens: int = 8192  # source tokens x beam in one batch; changes speed and memory, never results

    @property
    def extra(self) -> int:
        """The value of `max_extra`; 50 where it is not set, and no training has measured it."""
        return EXTRA if self.max_extra is None else self.max_extra


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """Settings of validation and of tests."""

    metrics: tuple[str, ...] = ()  # names of metrics, yours as module:object; the first selects checkpoints


@dataclass(frozen=True, kw_only=True)
class GenerateConfig:
    """Settings of text generation. The sampling filters apply in the order of these fields, then a token is drawn."""

    max_tokens: int = 256  # longest output; it ends earlier where the model writes <eos>
    min_tokens: int = 0  # tokens before the first that may be <eos>
    ignore_eos: bool = False  # never <eos>: an output ends at max_tokens or at a text of `stop`
    repetition_penalty: float = 1.0  # divides positive logits of tokens seen, multiplies negative (Keskar et al. 2019)
    frequency_penalty: float = 0.0  # taken off a token's logit for each time that it was generated
    presence_penalty: float = 0.0  # taken off once
    no_repeat_ngram: int | None = None  # no sequence of this many tokens comes twice
    temperature: float = 1.0  # below 1 closer to the likeliest token, which 0 always takes; above 1 more varied
    top_k: int | None = None  # of the likeliest k tokens
    top_p: float | None = None  # nucleus sampling: of the fewest tokens with this probability (Holtzman et al. 2020)
    min_p: float | None = None  # of tokens with this share of the largest probability (Nguyen et al. 2024)
    typical: float | None = None  # of the tokens nearest to the expected surprise, of this mass (Meister et al. 2023)
    stop: tuple[str, ...] = ()  # texts that end the output and are not part of it
    seed: int = 1
    batch_tokens: int = 16_384  # prompt and output tokens held at once; changes speed and memory, never results


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Recipe of a run: all settings that `heedful train` reads, and that are stored, resolved, with the model."""

    name: str = "heedful"
    task: str = "translation"  # a file in heedful/tasks, or a class of yours as module:Class
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    image: ImageConfig = field(default_factory=ImageConfig)
    video: VideoConfig = field(default_factory=VideoConfig)
    audio: AudioConfig = field(default_factory=AudioConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)  # of another architecture: its own ArchitectureConfig
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    generate: GenerateConfig = field(default_factory=GenerateConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    transcribe: TranscribeConfig = field(default_factory=TranscribeConfig)

    @property
    def longest_input(self) -> int:
        """Number of positions of the longest input that the model reads: tokens, patches, frames or tubelets."""
        lengths = {
            "text": self.data.max_length,
            "image": self.image.tokens,
            "audio": self.audio.longest,
            "video": self.video.tokens(self.video.frames, self.image),
        }
        return lengths[self.data.modality]
