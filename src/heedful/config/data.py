"""Data settings: corpora, filters, masking and the tokenizer."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le

from heedful.config.setting import Count, Fixed, OpenNames, Positive, Rate, Setting, Share
from heedful.registry import TOKENIZERS

Modality = Literal["text", "image", "audio", "video"]
Script = Literal["latin", "cyrillic", "greek", "arabic", "hebrew", "han", "kana", "hangul"]


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Corpus settings: plain text, two parallel files, or one table (TSV, CSV or JSONL).

    Text may be compressed (.gz, .bz2 or .xz). A corpus of images, audio or videos is a folder with a subfolder for
    each class, or a table with the path of each file.
    """

    source: str
    """Path of a text file, a table or a folder of media files; for a language model, also a folder of text files."""

    target: str | None = None
    """Path of the file with the target text, aligned line by line with `source`. A table needs none, because it
    contains both sides."""

    source_field: str = "source"
    """Column of the source text or file in a table: a JSONL key, a column name, or a column number counted from 1."""

    pair_field: str | None = None
    """Column of the second text, for tasks on sentence pairs."""

    target_field: str = "target"
    """Column of the target text or of the label."""

    part: tuple[Share, Share] = (0.0, 1.0)
    """Start and end of the part to read, as shares of the corpus's lines, documents, files or, for language models,
    characters."""

    weight: Positive = 1.0
    """Weight of the corpus in training: each epoch takes weight x size examples from it, so 2.0 uses each example
    twice."""


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """Settings of the filters that drop training pairs and report them. Validation and test text is never filtered."""

    max_characters: Count = 2000
    """Maximum length of a line in characters. Pairs with a longer line on either side are dropped before encoding."""

    max_tokens: Annotated[int, Ge(2)] = 250
    """Maximum length of a sentence in tokens, `<eos>` included, on either side."""

    max_ratio: Annotated[float, Ge(1)] | None = 9.0
    """Maximum ratio of the longer to the shorter side of a pair, in tokens. Not set: no limit."""

    duplicates: bool = False
    """If `true`, exact duplicates of a pair are kept."""

    source_script: Script | None = None
    """Script of the source text. Pairs whose source is mostly in another script are dropped; not set: any script."""

    target_script: Script | None = None
    """Script of the target text, like `source_script`."""


@dataclass(frozen=True, kw_only=True)
class VariantConfig:
    """Settings of variants: copies of training pairs, changed to look typed in haste, that are added to the pairs.

    Edited texts end with punctuation and are rarely all in capitals; a model that has only read such texts translates
    others poorly. Pairs are chosen by a hash of their texts. Validation and test text has no variants.
    """

    unpunctuated: Share = 0.0
    """Share of the pairs that also have a copy without the punctuation at the end of both texts."""

    upper_case: Share = 0.0
    """Share of the pairs that also have a copy in capitals, on both sides. `heedful translate` does not need such
    copies, because it translates a line in capitals as if it were in lower case."""

    lower_case: Share = 0.0
    """Share of the pairs that also have a copy whose source is in lower case, with the target unchanged."""


ORDER = Fixed("the run would lose its position in the data")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Data settings. Relative paths are resolved against `root`, and a relative `root` against the recipe's folder."""

    root: Annotated[str, Setting(resume="free", per_machine=True)] = "."
    """Folder with the data files."""

    modality: Modality = "text"
    """What the model reads: text, images, audio or videos. The task sets it."""

    labelled: bool = True
    """If `true`, each image, audio clip or video has a class or a text. The task sets it."""

    source_language: Annotated[str, Setting(aliases=("source_lang", "src_lang"))] = "src"
    """ISO 639 code of the source language, such as `en` or `zh-Hant`. `src` means that the language is unknown."""

    target_language: Annotated[str, Setting(aliases=("target_lang", "tgt_lang"))] = "tgt"
    """ISO 639 code of the target language; it selects how metrics split text into words. `tgt` means unknown."""

    train: tuple[CorpusConfig, ...] = ()
    """Training data: one or more corpora."""

    valid: CorpusConfig | None = None
    """Validation data. Not set: the run is not validated."""

    test: Annotated[CorpusConfig | None, Setting(resume="free")] = None
    """Test data, which `heedful evaluate` reads and training does not."""

    filters: FilterConfig = field(default_factory=FilterConfig)
    """Filters of the training pairs."""

    variants: VariantConfig = field(default_factory=VariantConfig)
    """Variants of the training pairs."""

    max_length: Annotated[
        int,
        Ge(8),
        Setting(aliases=("block_size", "context_length", "max_len", "max_seq_len", "max_seq_length", "seq_len")),
    ] = 512
    """Maximum number of tokens in an input that is one sequence: the context of a language model, or the text or text
    pair of a classifier. An encoder-decoder is limited by `data.filters.max_tokens` instead."""

    documents: Literal["file", "section", "paragraph", "line"] = "file"
    """Unit of plain text that counts as one document. Sections are separated by two or more blank lines."""

    cross_documents: bool = True
    """If `true`, attention crosses the boundaries of documents that are packed into one sequence."""

    labels: tuple[str, ...] = ()
    """Classes or tags, in the order of the model's outputs. Empty: those of the training data."""

    label_mean: Annotated[float | None, Setting(resume="free")] = None
    """Mean of the labels: regression learns (label - `label_mean`) / `label_scale`. Not set: computed from the training
    data."""

    label_scale: Annotated[float | None, Setting(resume="free")] = None
    """Standard deviation of the labels. Not set: computed from the training data. Set 1.0, with `label_mean = 0.0`, to
    learn the numbers as they are."""

    words: Annotated[tuple[str, ...], Setting(resume="free")] = ()
    """Words that a tagger does not split when it divides a text into words. Empty: derived from the training data."""

    bad_utf8: Literal["error", "skip", "replace"] = "error"
    """What to do with a line that is not UTF-8: stop, skip the line, or replace the bytes with U+FFFD."""

    bad_files: Literal["error", "skip", "skip_all"] = "error"
    """What to do with a media file that cannot be read: stop, skip it in training only, or always skip it."""

    truncated_files: Literal["error", "read"] = "error"
    """What to do with a truncated image or audio file: treat it as a bad file, or read what is left of it."""


@dataclass(frozen=True, kw_only=True)
class MaskingConfig:
    """Masking settings for a masked language model (Devlin et al. 2019, section 3.1 and appendix A.1).

    Masked image patches (He et al. 2022) use `rate` only.
    """

    rate: Annotated[Rate, Setting(aliases=("mlm_probability",))] = 0.15
    """Share of the tokens of a sequence, or of the patches of an image, that are chosen for prediction.

    He et al. (2022) choose 0.75 of the patches.
    """

    mask: Share = 0.8
    """Share of the chosen tokens that become `<mask>`."""

    random: Share = 0.1
    """Share of the chosen tokens that become a random token. The rest stay unchanged."""

    whole_words: bool = False
    """If `true`, whole words are chosen, with all their pieces, instead of single pieces."""

    next_sentence: bool = True
    """If `true`, each sequence is a pair of passages, and the model learns whether they are consecutive, which is true
    of half the pairs."""

    short: Rate = 0.1
    """Share of the sequences that are shortened to a random length."""


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """Tokenizer settings. Special tokens have fixed ids: <pad> 0, <unk> 1, <bos> 2, <eos> 3; `mask` adds <mask> 4.

    In BERT's terms, <bos> is [CLS] and <eos> is [SEP].
    """

    kind: Annotated[
        Literal["word", "character", "byte", "bpe", "unigram", "wordpiece", "foreign"],
        OpenNames(TOKENIZERS),
        Setting(values={"sentencepiece": "unigram"}),
    ] = "bpe"
    """Tokenizer algorithm. `foreign` is a converted tokenizer, given by `path`; it cannot be trained."""

    vocab_size: Annotated[int, Ge(5), Le(10_000_000), Setting(aliases=("vocab",))] = 8000
    """Maximum vocabulary size, special tokens included."""

    joint: Annotated[bool, Setting(aliases=("joined_dictionary", "share_vocab"))] = True
    """If `true`, source and target share one vocabulary."""

    lowercase: Annotated[bool, Setting(aliases=("do_lower_case", "lower"))] = False
    """If `true`, text is converted to lower case."""

    normalization: Literal["none", "nfc", "nfkc"] = "none"
    """Unicode normalisation of the text. `none` leaves it unchanged."""

    byte_fallback: bool = True
    """If `true`, characters outside the vocabulary are encoded as bytes instead of `<unk>`."""

    pretokenized: bool = False
    """If `true`, the text is already tokenized, and is split only at spaces."""

    mask: bool = False
    """If `true`, the vocabulary has the token `<mask>`, which masked language models need."""

    dropout: Annotated[Rate, Setting(resume="ask")] = 0.0
    """Probability of BPE dropout in training (Provilkov et al. 2020)."""

    path: Annotated[str | None, Setting(resume="free")] = None
    """Folder of a trained tokenizer, relative to `data.root`. Not set: a tokenizer is trained on the training data."""
