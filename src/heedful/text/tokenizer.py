"""Tokenizer: text to token ids and back, with BPE dropout in training (Provilkov et al. 2020, algorithm 1)."""

import json
import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path

import tokenizers
from tokenizers import Encoding, PreTokenizedString, Token

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text import tokenizer_folder
from heedful.text.piece_spelling import writing_of
from heedful.text.pipeline import BOS, EOS, MASK, PAD, UNK, reserved, specials

Pair = tuple[int, int]
RankedMerges = Mapping[Pair, tuple[int, int]]  # two neighbours -> (rank, the piece they become); low ranks merge first

WINDOW = 128  # symbols; a word of a million characters would take a million squared steps


def merge_with_dropout(symbols: Sequence[int], merges: RankedMerges, rate: float, rng: random.Random) -> list[int]:
    """Merge the characters of one word by BPE, each possible merge being skipped with probability `rate` at each step.

    A word longer than `WINDOW` symbols is cut there, which only loses the merges across the cuts.
    """
    merged = []
    for start in range(0, len(symbols), WINDOW):
        merged += _merge(list(symbols[start : start + WINDOW]), merges, rate, rng)
    return merged


def _merge(symbols: list[int], merges: RankedMerges, rate: float, rng: random.Random) -> list[int]:
    while True:
        found = [
            (*merges[pair], place)
            for place, pair in enumerate(pairwise(symbols))
            if pair in merges and rng.random() >= rate
        ]
        if not found:
            return symbols
        _, piece, place = min(found)
        symbols[place : place + 2] = [piece]


__all__ = ["BOS", "EOS", "MASK", "PAD", "UNK", "Tokenizer", "checked"]


CHUNK = 1024  # lines that are encoded together

Place = tuple[int, int]  # a range of characters of a text: from the first number on and before the second


class Tokenizer:
    """A trained tokenizer: special tokens (ids 0 to 3, or 4), the 256 bytes if it has them, and subword pieces."""

    def __init__(self, definition: str, config: TokenizerConfig) -> None:
        self.config = config
        self.first_piece = len(specials(config))  # the ids below it are special tokens
        self.byte_ids = range(self.first_piece, len(reserved(config)))  # ids of the 256 bytes; empty without fallback
        self._reserved = max(self.first_piece, self.byte_ids.stop)  # the first id that is a piece of text
        self.definition = definition  # the contents of tokenizer.json
        self._library = tokenizers.Tokenizer.from_str(definition)
        self._model = self._library.model
        self._normalizer = self._library.normalizer
        self._splitter = self._library.pre_tokenizer
        self._writing = writing_of(self._library, config)
        self.first_space = self._writing.first_space  # the text that decoding takes off the front
        self._ids = self._library.get_vocab()
        self._names = {i: name for name, i in self._ids.items()}
        self._spellings = {i: self._spelling(i) for i in self._names}

    @property
    def first_word(self) -> int:
        """The first id of the vocabulary that is neither a special token nor, unless there is nothing else, a byte."""
        return self.byte_ids.stop if len(self) > self.byte_ids.stop else self.first_piece

    def __len__(self) -> int:
        """Size of the vocabulary, special tokens included."""
        return len(self._ids)

    def encode(self, text: str) -> list[int]:
        """Encode a text as token ids, without special tokens.

        Raises:
            InputError: The text holds a lone surrogate.
        """
        return self._complete(text, self._encode(text).ids)

    def encode_with_places(self, text: str) -> tuple[list[int], list[Place]]:
        """Encode a text as token ids, and return the characters of the text that each token stands for.

        A space belongs to the word after it. Where a character is spelled by several pieces, such as its bytes, it is
        the place of each; where several become one, as in a normal form, or a character is not encoded at all, the
        piece before has them, up to the next space.

        Raises:
            InputError: The text holds a lone surrogate.
        """
        encoding = self._encode_lossless(checked(text)) if self.byte_ids else self._encode(text)
        begins = [*(begin for begin, _ in encoding.offsets), len(text)]
        limits = [begins[bisect_left(begins, end)] for _, end in encoding.offsets]
        return encoding.ids, [
            (begin, max(end, _end_of_word(text, end, limit)))
            for (begin, end), limit in zip(encoding.offsets, limits, strict=True)
        ]

    def unknown(self, text: str) -> list[str]:
        """The parts of a text that the vocabulary lacks, which `encode` gives as <unk>; neighbours are joined.

        Raises:
            InputError: The text holds a lone surrogate.
        """
        found: list[Place] = []
        for i, (begin, end) in zip(*self.encode_with_places(text), strict=True):
            if i == UNK and found and found[-1][1] == begin and not text[begin].isspace():
                found[-1] = (found[-1][0], end)
            elif i == UNK:
                found.append((begin, end))
        return [text[begin:end].strip() for begin, end in found]

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Encode a batch of texts as token ids, without special tokens, on all cores."""
        return list(self.encode_lines(texts))

    def encode_lines(self, lines: Iterable[str]) -> Iterator[list[int]]:
        """Encode a stream of lines as token ids on all cores, in order and in constant memory."""
        lines = iter(lines)
        while chunk := [checked(line) for line in islice(lines, CHUNK)]:
            encodings = self._library.encode_batch_fast(chunk, add_special_tokens=False)
            yield from (self._complete(line, encoding.ids) for line, encoding in zip(chunk, encodings, strict=True))

    def encode_with_dropout(self, text: str, rate: float, rng: random.Random) -> list[int]:
        """Encode a text with BPE dropout (Provilkov et al. 2020): a random spelling, which decodes to the same text.

        Args:
            text: Any text.
            rate: The probability of skipping a merge: 0 gives `encode(text)`, 1 gives characters.
            rng: Source of randomness; the same state gives the same spelling.

        Raises:
            InputError: The tokenizer is not of kind "bpe", the rate is no probability, or as in `encode`.
        """
        if self.config.kind != "bpe":
            raise InputError(f'BPE dropout needs a tokenizer of kind "bpe", and this one is "{self.config.kind}"')
        if not 0 <= rate <= 1:
            raise InputError(f"the rate of BPE dropout is a probability, from 0 to 1, and not {rate}")
        if rate == 0:
            return self.encode(text)
        words = map(self._characters, self._words(text))

        return [i for word in words for i in merge_with_dropout(word, self._merges, rate, rng)]

    def encode_continuation(self, text: str) -> list[int]:
        """Encode a text that continues another one: no space is added before its first word.

        A foreign tokenizer knows no such texts; one of SentencePiece may put a space before the first word.

        Raises:
            InputError: The text holds a lone surrogate.
        """
        words = self._cut(self._normal(text).removeprefix(self.first_space))
        return [i for word in words for i in self._spelled_out(word)]

    def decode(self, ids: Iterable[int]) -> str:
        """Decode token ids to text; <pad>, <bos> and <eos> are skipped, <unk> is shown, broken UTF-8 becomes U+FFFD.

        Raises:
            InputError: An id is not in the vocabulary.
        """
        text = self.spell(ids).decode("utf-8", errors="replace")
        return text.removeprefix(self.first_space).removesuffix(self._writing.last_space)

    def spell(self, ids: Iterable[int]) -> bytes:
        """Decode token ids to UTF-8, with the space before the first word; it may begin or end inside a character.

        Raises:
            InputError: An id is not in the vocabulary.
        """
        return b"".join(self._spell(ids))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Printable names of token ids: "▁" is a space; bytes and special tokens stand in angle brackets.

        Raises:
            InputError: An id is not in the vocabulary.
        """
        ids = list(ids)
        return [name if i < self._reserved else _printable(name) for i, name in zip(ids, self.texts(ids), strict=True)]

    def texts(self, ids: Iterable[int]) -> list[str]:
        """Texts of token ids, each with the space before it; bytes and special tokens stand in angle brackets.

        A byte of a piece that ends inside a character becomes a lone surrogate.

        Raises:
            InputError: An id is not in the vocabulary.
        """
        ids = list(ids)
        spelled = zip(ids, self._spell(ids), strict=True)
        return [
            self._names[i] if i < self._reserved else spelling.decode("utf-8", errors="surrogateescape")
            for i, spelling in spelled
        ]

    def word_of_piece(self, ids: Iterable[int]) -> list[int]:
        """The number of the word that each token belongs to, from 0; a special token is a word by itself.

        Raises:
            InputError: An id is not in the vocabulary.
        """
        spellings = self._spell(ids)
        starts = self._word_starts(b"".join(spellings))
        words: list[int] = []
        word, place, apart = -1, 0, True
        for spelling in spellings:
            special = not spelling
            word += special or apart or place in starts
            words.append(word)
            place += len(spelling)
            apart = special
        return words

    @property
    def digest(self) -> str:
        """SHA-256 of the tokenizer's saved files, in hex: tokenizers with equal digests encode equally."""
        return tokenizer_folder.digest(self.definition + tokenizer_folder.describe(self.definition, self.config))

    def save(self, folder: Path) -> None:
        """Write the tokenizer to `folder`/tokenizer.json and `folder`/config.json.

        Raises:
            InputError: The folder holds something else than a tokenizer.
            RunError: The folder cannot be written.
        """
        tokenizer_folder.write(folder, self.files())

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the files that `save` writes, by their names."""
        return tokenizer_folder.files(self.definition, self.config)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Load a tokenizer from a folder that `save` wrote.

        Raises:
            InputError: A file is missing, damaged, or was not written by heedful.
        """
        from heedful.text.allowed_definition import check_definition

        definition, config = tokenizer_folder.read(folder)
        file = folder / tokenizer_folder.DEFINITION
        check_definition(definition, config, str(file))
        try:
            return cls(definition, config)
        except Exception as error:  # the library has no narrower one
            raise InputError(
                f"{file}: the installed tokenizers "
                f"{tokenizers.__version__} cannot read it ({error}); update it: pip install -U tokenizers"
            ) from error

    @cached_property
    def _merges(self) -> "RankedMerges":
        pairs = json.loads(self.definition)["model"]["merges"]
        ids = self._ids
        return {(ids[a], ids[b]): (rank, ids[a + b]) for rank, (a, b) in enumerate(pairs)}

    def _words(self, text: str) -> list[str]:
        return self._cut(self._normal(text))

    def _normal(self, text: str) -> str:
        return self._normalizer.normalize_str(checked(text)) if self._normalizer else checked(text)

    def _cut(self, normal: str) -> list[str]:
        return [word for word, _ in self._splitter.pre_tokenize_str(normal)]

    def _encode(self, text: str) -> Encoding:
        return self._library.encode(checked(text), add_special_tokens=False)

    def _complete(self, text: str, ids: list[int]) -> list[int]:
        """Spell unknown words in characters and bytes, where the library's model itself cannot."""
        if UNK not in ids or not self.byte_ids:
            return ids
        words = self._words(text)
        spelled = {word: self._spelled_out(word) for word in set(words)}
        return [i for word in words for i in spelled[word]]

    def _spelled_out(self, word: str) -> list[int]:
        ids = [token.id for token in self._model.tokenize(word)]
        return self._characters(word) if UNK in ids and self.byte_ids else ids

    def _encode_lossless(self, text: str) -> Encoding:
        """The pieces of a text that is spelled byte for byte; the library knows where in the text they come from."""
        parts = PreTokenizedString(text)
        parts.normalize(self._normalizer.normalize)
        self._splitter.pre_tokenize(parts)
        parts.tokenize(self._tokens)
        return parts.to_encoding()

    def _tokens(self, word: str) -> list[Token]:
        """The pieces of a word with their places in it, in bytes."""
        ids = self._spelled_out(word)
        places = pairwise(accumulate((len(self._spellings[i]) for i in ids), initial=0))
        return [Token(i, self._names[i], place) for i, place in zip(ids, places, strict=True)]

    def _characters(self, word: str) -> list[int]:
        """The id of each character, or those of its bytes, or <unk>."""
        ids: list[int] = []
        for character in word:
            known = self._ids.get(character)
            if known is not None:
                ids.append(known)
            elif self.byte_ids:
                ids.extend(self.byte_ids[byte] for byte in character.encode("utf-8"))
            else:
                ids.append(UNK)
        return ids

    def _spelling(self, i: int) -> bytes:
        """The bytes that an id contributes to a decoded text."""
        if i in self.byte_ids:
            return bytes([i - self.first_piece])
        if i == UNK:
            return self._writing.unknown
        return b"" if i < self.first_piece else self._writing.spell(self._names[i])

    def _spell(self, ids: Iterable[int]) -> list[bytes]:
        try:
            return [self._spellings[i] for i in ids]
        except KeyError as error:
            raise InputError(f"id {error} is not in the vocabulary, whose ids go from 0 to {len(self) - 1}") from error

    def _word_starts(self, spelled: bytes) -> set[int]:
        """The places, in bytes, where words begin; spaces that belong to no word begin the next one."""
        text = spelled.decode("utf-8", errors="surrogateescape")  # a broken byte becomes one surrogate: one character
        words = self._writing.splitter.pre_tokenize_str(re.sub("[\ud800-\udfff]", "\ufffd", text))
        places = list(accumulate((len(c.encode("utf-8", errors="surrogateescape")) for c in text), initial=0))
        return {0, *(places[last] for _, (_, last) in words)}


def checked(text: str) -> str:
    """Return a text unchanged, if it can be written in UTF-8.

    Raises:
        InputError: The text holds a lone surrogate.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"character {error.start + 1} of the text is a lone surrogate (U+{ord(text[error.start]):04X}), half of a "
            'character; decode the text again, with errors="replace" where it is damaged'
        ) from error
    return text


def _end_of_word(text: str, begin: int, limit: int) -> int:
    return next((place for place in range(begin, limit) if text[place].isspace()), limit)


def _printable(text: str) -> str:
    shown = text.replace(" ", "▁")
    return "".join(c if c.isprintable() else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte that is no character by itself
        return f"<0x{ord(character) - 0xDC00:02X}>"
    return character.encode("unicode_escape").decode("ascii")
