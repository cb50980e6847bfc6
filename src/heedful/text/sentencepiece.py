"""Reader of SentencePiece models, which parses a few fields of a Protocol Buffers message without the library."""

import base64
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.storage.disk import read_small
from heedful.text.tokenizer import MAX_FILE

# Field numbers and type values in sentencepiece_model.proto.
UNIGRAM = 1
PIECES, TRAINER, NORMALIZER = 1, 2, 3
NAME, SCORE, KIND = 1, 2, 3
MODEL_TYPE = 3
CHARACTERS, FIRST_SPACE, EXTRA_SPACES = 2, 3, 4
NORMAL, USER_DEFINED = 1, 4

Value = int | bytes


@dataclass(frozen=True, kw_only=True)
class SentencePieceModel:
    """A SentencePiece model: its pieces, in which U+2581 stands for a space, and its normalisation settings."""

    scores: dict[str, float]  # log-probabilities of the pieces that can occur in a text
    characters: bytes  # the compiled table of character replacements; empty if there is none
    first_space: bool  # True if encoding adds a space to the front of a text
    remove_extra_spaces: bool

    def normalizer(self) -> dict[str, Any]:
        """Return the model's normalisation as the normalizer of a tokenizer.json."""
        replace = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(self.characters).decode("ascii")}
        strip = {"type": "Strip", "strip_left": True, "strip_right": True}
        single = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
        # The table may replace other whitespace with spaces, so extra spaces are removed after it.
        steps = ([replace] if self.characters else []) + ([strip, single] if self.remove_extra_spaces else [])
        return {"type": "Sequence", "normalizers": steps}


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Read a SentencePiece unigram model from a file that ends in .spm or .model."""
    try:
        model = list(fields(read_small(path, MAX_FILE)))
        trainer = _last(model, TRAINER)
        normalizer = _last(model, NORMALIZER)
        pieces = [dict(fields(piece)) for number, piece in model if number == PIECES and isinstance(piece, bytes)]
        # Control tokens, such as <s>, and <unk> never match any part of a text.
        scores = {
            _text(piece[NAME]): _number(piece.get(SCORE, bytes(4)))
            for piece in pieces
            if piece.get(KIND, NORMAL) in (NORMAL, USER_DEFINED)
        }
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError) as error:
        raise InputError(f"{path}: damaged, or not a SentencePiece model ({error}); download it again") from error
    if trainer.get(MODEL_TYPE, UNIGRAM) != UNIGRAM or not scores:
        raise InputError(f"{path}: contains no unigram model, the only kind of SentencePiece model that heedful reads")
    characters = normalizer.get(CHARACTERS, b"")
    return SentencePieceModel(
        scores=scores,
        characters=characters if isinstance(characters, bytes) else b"",
        first_space=bool(normalizer.get(FIRST_SPACE, True)),
        remove_extra_spaces=bool(normalizer.get(EXTRA_SPACES, True)),
    )


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of each field of a Protocol Buffers message, in order.

    A value is an integer, or the bytes of a string, an inner message or a fixed-size number.
    """
    offset = 0
    while offset < len(message):
        key, offset = _varint(message, offset)
        # The lowest three bits of a key are the wire type, which determines how the value is stored.
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, offset = _varint(message, offset)
            yield number, value
            continue
        if wire not in _SIZES and wire != 2:
            raise ValueError(f"a field of wire type {wire} at byte {offset}")
        size, offset = _varint(message, offset) if wire == 2 else (_SIZES[wire], offset)
        if size > len(message) - offset:
            raise ValueError(f"a field of {size} bytes at byte {offset} of {len(message)}")
        yield number, message[offset : offset + size]
        offset += size


_SIZES = {1: 8, 5: 4}  # wire types of fixed size


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    """Read an integer with seven bits per byte, lowest first; the eighth bit is set if more bytes follow.

    Returns the integer and the offset after it.
    """
    value = 0
    # 64 bits take at most ten bytes.
    for shift in range(0, 70, 7):
        if offset >= len(message):
            break
        byte = message[offset]
        value |= (byte & 0x7F) << shift
        offset += 1
        if byte < 0x80:
            return value, offset
    raise ValueError(f"an unterminated number at byte {offset}")


def _last(message: list[tuple[int, Value]], number: int) -> dict[int, Value]:
    """Return the fields of the last inner message in field `number`, or {} if there is none."""
    messages = [value for key, value in message if key == number]
    return dict(fields(messages[-1])) if messages and isinstance(messages[-1], bytes) else {}


def _text(value: Value) -> str:
    if not isinstance(value, bytes) or not value:
        raise ValueError("a piece without a name")
    return value.decode("utf-8")


def _number(value: Value) -> float:
    if not isinstance(value, bytes) or len(value) != 4:
        raise ValueError("a score that is not a float")
    (score,) = struct.unpack("<f", value)
    if not math.isfinite(score):
        raise ValueError("a score that is not finite")
    return score
