"""Spelling of subword pieces: the text that the name of a piece stands for, in each family of tokenizers.

Each family marks in its own way where a word begins. heedful's own pieces are named after their text. Byte-level BPE
(GPT-2) writes a printable character for each byte, and CLIP's marks the last piece of a word, too; WordPiece (BERT)
marks the pieces that continue a word, and SentencePiece writes U+2581 for a space.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tokenizers
from tokenizers import pre_tokenizers

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.pipeline import first_space

SPACE = "▁"
WITHOUT_SPACE = (".", ",", "?", "!")  # a word that begins so follows without a space when WordPiece is decoded


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Rules by which the pieces of a tokenizer become text."""

    spell: Callable[[str], bytes]  # from a piece's name to the bytes that it adds to a text
    splitter: pre_tokenizers.PreTokenizer  # cuts a decoded text into the words that were encoded
    first_space: str = ""  # the text that decoding takes off the front
    last_space: str = ""  # the text that decoding takes off the end
    unknown: bytes = b"<unk>"


def writing_of(library: tokenizers.Tokenizer, config: TokenizerConfig) -> Writing:
    """Return the rules by which the pieces of a tokenizer become text.

    Raises:
        InputError: The tokenizer is foreign, and its pieces are written in a way that heedful does not know.
    """
    if config.kind != "foreign":
        return Writing(
            spell=str.encode,
            splitter=library.pre_tokenizer,
            first_space=first_space(config),
            unknown=b" <unk>" if config.kind in ("word", "wordpiece") else b"<unk>",
        )
    decoder = json.loads(library.decoder.__getstate__()) if library.decoder else {"type": "none"}
    if decoder["type"] not in _WRITINGS:
        raise InputError(
            f'a tokenizer whose decoder is "{decoder["type"]}" cannot be taken over; those of BERT (WordPiece), GPT-2 '
            "(ByteLevel) and SentencePiece (Metaspace, or a Sequence) can"
        )
    suffix = getattr(library.model, "end_of_word_suffix", None)
    if decoder["type"] == "ByteLevel" and suffix:
        return _byte_level_with_suffix(suffix)
    return _WRITINGS[decoder["type"]](decoder, library.pre_tokenizer)


def _byte_level(_: dict[str, Any], splitter: pre_tokenizers.PreTokenizer) -> Writing:
    return Writing(spell=_bytes_of_characters, splitter=splitter)


def _byte_level_with_suffix(suffix: str) -> Writing:
    splitter = pre_tokenizers.Split(" ", "merged_with_previous")
    return Writing(spell=partial(_ended, suffix=suffix), splitter=splitter, last_space=" ")


def _wordpiece(decoder: dict[str, Any], splitter: pre_tokenizers.PreTokenizer) -> Writing:
    spell = partial(_continued, prefix=decoder["prefix"], close=WITHOUT_SPACE if decoder["cleanup"] else ())
    return Writing(spell=spell, splitter=splitter, first_space=" ", unknown=b" <unk>")


def _metaspace(decoder: dict[str, Any], _: pre_tokenizers.PreTokenizer) -> Writing:
    strip = decoder["prepend_scheme"] != "never"
    return Writing(
        spell=partial(_spaced, mark=decoder["replacement"], byte_fallback=False),
        splitter=pre_tokenizers.Metaspace(),
        first_space=" " if strip else "",
    )


def _sequence(decoder: dict[str, Any], splitter: pre_tokenizers.PreTokenizer) -> Writing:
    steps = {step["type"]: step for step in decoder["decoders"]}
    if unknown := steps.keys() - {"Replace", "ByteFallback", "Fuse", "Strip"}:
        raise InputError(
            f"a tokenizer whose decoder is a sequence with {', '.join(sorted(unknown))} cannot be taken over"
        )
    return Writing(
        spell=partial(_spaced, mark=SPACE if "Replace" in steps else " ", byte_fallback="ByteFallback" in steps),
        splitter=pre_tokenizers.Metaspace() if "Replace" in steps else splitter,
        first_space=" " if "Strip" in steps else "",
    )


_WRITINGS = {"ByteLevel": _byte_level, "WordPiece": _wordpiece, "Metaspace": _metaspace, "Sequence": _sequence}


def _byte_of_character() -> dict[str, int]:
    """Byte-level BPE writes a byte as the character of its number, or as one from U+0100 on if none can be seen."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    numbers = {chr(byte): byte for byte in printable}
    return numbers | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_BYTES = _byte_of_character()


def _bytes_of_characters(name: str) -> bytes:
    if all(character in _BYTES for character in name):
        return bytes(_BYTES[character] for character in name)
    return name.encode()  # an added token, such as a name of a role in a conversation


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
