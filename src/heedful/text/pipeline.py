"""Text to words and pieces to text: special tokens, normalisation, splitting into words, and the spelling of pieces.

A word includes the space before it (" apple"). A text gets one space in front, so that its first word is like any
other, unless the pieces are single characters or bytes; decoding joins the pieces and drops this space. Words are
marked with the space itself, because another character, such as U+2581, could also occur in the text.

Foreign tokenizers mark words differently. Byte-level BPE (GPT-2) writes a printable character for each byte, and CLIP's
also marks the last piece of a word; WordPiece (BERT) marks the pieces that continue a word, and SentencePiece writes
U+2581 for a space.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError

PAD, UNK, BOS, EOS, MASK = 0, 1, 2, 3, 4
ABSENT = -1  # the old id of a special token that an imported vocabulary lacks
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))

# A reserved name that is typed as text is split after its "<". No word contains it then, so that a model can neither
# learn nor look up a piece with this name.
_RESERVED_NAME = r"<(?=(?:pad|unk|bos|eos|mask|unused\d+|0x[0-9A-F]{2})>)"
# A word includes one space before it; each further space is a word by itself.
_SPACED_WORD = r" ?[^ ]+| "
_RAW_WORD = r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s"
_HAN_CHARACTER = r" ?\p{Han}\p{M}*| ?[[\p{L}\p{M}]&&[^\p{Han}]]+|"
EXPRESSIONS = (_RESERVED_NAME, _SPACED_WORD, _RAW_WORD, _HAN_CHARACTER + _RAW_WORD)  # of all splitters


def specials(config: TokenizerConfig) -> tuple[str, ...]:
    """Return the names of the special tokens of a tokenizer, which have the first ids."""
    return (*SPECIALS, "<mask>") if config.mask else SPECIALS


def reserved(config: TokenizerConfig) -> tuple[str, ...]:
    """Return the names with which a vocabulary begins: special tokens and, with byte fallback, the 256 bytes."""
    return specials(config) + (BYTES if config.byte_fallback else ())


def first_space(config: TokenizerConfig) -> str:
    """Return the space that is put before a text to encode, or "" if pieces are single characters or bytes."""
    return "" if config.kind in ("character", "byte") else " "


def normalizer(config: TokenizerConfig) -> normalizers.Normalizer:
    """Build the normalizer of a tokenizer: Unicode normalisation, lower-casing and the first space, in this order."""
    forms = {"none": [], "nfc": [normalizers.NFC()], "nfkc": [normalizers.NFKC()]}
    case = [normalizers.Lowercase()] if config.lowercase else []
    space = [normalizers.Prepend(" ")] if first_space(config) else []
    return normalizers.Sequence([*forms[config.normalization], *case, *space])


def splitter(config: TokenizerConfig) -> pre_tokenizers.PreTokenizer:
    """Build the pre-tokenizer, which splits at spaces and, in raw text, between letters, digits and other characters.

    For a word tokenizer, each Han character of raw text is a word. The other kinds learn how to split runs of them.
    """
    raw_word = (_HAN_CHARACTER if config.kind == "word" else "") + _RAW_WORD
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_RESERVED_NAME), "merged_with_previous"),
            pre_tokenizers.Split(Regex(_SPACED_WORD if config.pretokenized else raw_word), "isolated"),
        ]
    )


def assemble(model: models.Model, config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Build a `tokenizers` library tokenizer around a model, with heedful's normalizer, splitter and decoder.

    Special tokens are only ids: texts are never searched for them.
    """
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizer(config)
    library.pre_tokenizer = splitter(config)
    # Without `Fuse`, which joins all pieces, `Strip` would remove the space before each word.
    strip = [decoders.Strip(" ", left=1, right=0)] if first_space(config) else []
    library.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), *strip])
    return library


SPACE = "▁"
WITHOUT_SPACE = (".", ",", "?", "!")  # words that begin with these are decoded from WordPiece without a space


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Rules for turning the pieces of a tokenizer into text."""

    spell: Callable[[str], bytes]  # from a piece's name to the bytes that it adds to a text
    splitter: pre_tokenizers.PreTokenizer  # splits a decoded text into the words that were encoded
    first_space: str = ""  # removed from the beginning of a decoded text
    last_space: str = ""  # removed from the end
    unknown: bytes = b"<unk>"


def writing_of(library: tokenizers.Tokenizer, config: TokenizerConfig) -> Writing:
    """Return the rules for turning the pieces of a tokenizer into text."""
    if config.kind != "foreign":
        return Writing(
            spell=str.encode,
            splitter=library.pre_tokenizer,
            first_space=first_space(config),
            # For these kinds, <unk> stands for a whole word, which includes the space before it.
            unknown=b" <unk>" if config.kind in ("word", "wordpiece") else b"<unk>",
        )
    decoder: dict[str, Any] = json.loads(library.decoder.__getstate__()) if library.decoder else {"type": "none"}
    splitter = library.pre_tokenizer
    if decoder["type"] == "ByteLevel":
        if not (suffix := getattr(library.model, "end_of_word_suffix", None)):
            return Writing(spell=_bytes_of_characters, splitter=splitter)
        # CLIP marks the last piece of each word, so decoding adds a space after this piece.
        splitter = pre_tokenizers.Split(" ", "merged_with_previous")
        return Writing(spell=partial(_ended, suffix=suffix), splitter=splitter, last_space=" ")
    if decoder["type"] == "WordPiece":
        spell = partial(_continued, prefix=decoder["prefix"], close=WITHOUT_SPACE if decoder["cleanup"] else ())
        return Writing(spell=spell, splitter=splitter, first_space=" ", unknown=b" <unk>")
    if decoder["type"] == "Metaspace":
        return Writing(
            spell=partial(_spaced, mark=decoder["replacement"], byte_fallback=False),
            splitter=pre_tokenizers.Metaspace(),
            first_space=" " if decoder["prepend_scheme"] != "never" else "",
        )
    if decoder["type"] != "Sequence":
        raise InputError(
            f'a tokenizer whose decoder is "{decoder["type"]}" cannot be imported; those of BERT (WordPiece), GPT-2 '
            "(ByteLevel) and SentencePiece (Metaspace, or a Sequence) can"
        )
    steps = {step["type"]: step for step in decoder["decoders"]}
    if unknown := steps.keys() - {"Replace", "ByteFallback", "Fuse", "Strip"}:
        raise InputError(
            f"a tokenizer whose decoder is a sequence with {', '.join(sorted(unknown))} cannot be imported"
        )
    return Writing(
        spell=partial(_spaced, mark=SPACE if "Replace" in steps else " ", byte_fallback="ByteFallback" in steps),
        splitter=pre_tokenizers.Metaspace() if "Replace" in steps else splitter,
        first_space=" " if "Strip" in steps else "",
    )


# Byte-level BPE writes a printable byte as the character with its code point, and the others as characters from U+0100.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {chr(byte): byte for byte in _PRINTABLE}
_BYTES |= {chr(0x100 + index): byte for index, byte in enumerate(sorted(set(range(256)) - set(_PRINTABLE)))}


def _bytes_of_characters(name: str) -> bytes:
    if all(character in _BYTES for character in name):
        return bytes(_BYTES[character] for character in name)
    return name.encode()  # an added token, such as the name of a role in a conversation


def _ended(name: str, suffix: str) -> bytes:
    space = b" " if name.endswith(suffix) else b""
    return _bytes_of_characters(name.removesuffix(suffix)) + space


def _continued(name: str, prefix: str, close: tuple[str, ...]) -> bytes:
    if name.startswith(prefix):
        return name.removeprefix(prefix).encode()
    return name.encode() if name.startswith(close) else f" {name}".encode()


def _spaced(name: str, mark: str, byte_fallback: bool) -> bytes:
    if byte_fallback and (byte := re.fullmatch("<0x([0-9A-F]{2})>", name)):
        return bytes.fromhex(byte[1])
    return name.replace(mark, " ").encode()
