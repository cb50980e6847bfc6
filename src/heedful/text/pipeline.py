"""Preprocessing of text in a tokenizer: special tokens, normalisation, and the cut into words.

A word carries the space before it (" apple"). Every text gets one space in front, so that its first word looks like
any other; decoding joins the pieces and drops that space. Because the space itself is the mark, there is no stand-in
for it, such as U+2581, that a text could contain by accident.
"""

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from heedful.config.schema import TokenizerConfig

PAD, UNK, BOS, EOS, MASK = 0, 1, 2, 3, 4
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))

# Cutting a reserved name that is typed as text behind its "<" leaves no word that holds the name, so that no model can
# learn or look up a piece that is one.
_RESERVED_NAME = r"<(?=(?:pad|unk|bos|eos|mask|unused\d+|0x[0-9A-F]{2})>)"
_SPACED_WORD = r" ?[^ ]+| "
_RAW_WORD = r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s"
_HAN_CHARACTER = r" ?\p{Han}\p{M}*| ?[[\p{L}\p{M}]&&[^\p{Han}]]+|"
EXPRESSIONS = (_RESERVED_NAME, _SPACED_WORD, _RAW_WORD, _HAN_CHARACTER + _RAW_WORD)  # of all splitters


def specials(config: TokenizerConfig) -> tuple[str, ...]:
    """The names of the special tokens of a tokenizer, which are the first ids."""
    return (*SPECIALS, "<mask>") if config.mask else SPECIALS


def reserved(config: TokenizerConfig) -> tuple[str, ...]:
    """The head of every vocabulary: the special tokens and, with byte fallback, the 256 bytes."""
    return specials(config) + (BYTES if config.byte_fallback else ())


def first_space(config: TokenizerConfig) -> str:
    """The space that is put before a text to encode; empty where a piece is never longer than a character."""
    return "" if config.kind in ("character", "byte") else " "


def normalizer(config: TokenizerConfig) -> normalizers.Normalizer:
    """Build the normalizer of a tokenizer: Unicode normalisation, lower-casing and the first space, in this order."""
    forms = {"none": [], "nfc": [normalizers.NFC()], "nfkc": [normalizers.NFKC()]}
    case = [normalizers.Lowercase()] if config.lowercase else []
    space = [normalizers.Prepend(" ")] if first_space(config) else []
    return normalizers.Sequence([*forms[config.normalization], *case, *space])


def splitter(config: TokenizerConfig) -> pre_tokenizers.PreTokenizer:
    """Build the pre-tokenizer: cuts at spaces and, unless the text is pretokenized, between letters, digits and others.

    A word tokenizer takes each Han character of raw text for a word; the other kinds find the words in a run of them.
    """
    raw_word = (_HAN_CHARACTER if config.kind == "word" else "") + _RAW_WORD
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_RESERVED_NAME), "merged_with_previous"),
            pre_tokenizers.Split(Regex(_SPACED_WORD if config.pretokenized else raw_word), "isolated"),
        ]
    )


def assemble(model: models.Model, config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Build a tokenizer of the `tokenizers` library around a model, with heedful's normalizer, splitter and decoder.

    Special tokens are ids only: no text is ever searched for them.
    """
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizer(config)
    library.pre_tokenizer = splitter(config)
    strip = [decoders.Strip(" ", left=1, right=0)] if first_space(config) else []
    library.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), *strip])
    return library
