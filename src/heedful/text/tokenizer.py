"""Tokenizer: text to token ids and back, with BPE dropout in training (Provilkov et al. 2020, algorithm 1).

On disk it is a folder with tokenizer.json, in the format of the `tokenizers` library, and config.json, which describes
it.
"""

import hashlib
import json
import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path

import tokenizers
from pydantic import TypeAdapter, ValidationError
from tokenizers import Encoding, PreTokenizedString, Token

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.storage.atomic import atomic_file, named_write_errors
from heedful.storage.disk import read_small
from heedful.text.pipeline import BOS, EOS, MASK, PAD, UNK, reserved, specials, writing_of

RankedMerges = Mapping[tuple[int, int], tuple[int, int]]  # neighbours -> (rank, the piece they become); low ranks first
CharacterSpan = tuple[int, int]  # indices of characters in a text: the start, and the exclusive end

CHUNK = 1024  # lines that are encoded together
WINDOW = 128  # symbols; merging takes quadratic time, which would be far too long for a word of a million characters

FORMAT = 1
DEFINITION, DESCRIPTION = "tokenizer.json", "config.json"
MAX_FILE = 1 << 26  # bytes of tokenizer.json
RUN_SETTINGS = ("joint", "dropout", "path")  # how a run uses its tokenizers; the others describe a tokenizer


def merge_with_dropout(symbols: Sequence[int], merges: RankedMerges, rate: float, rng: random.Random) -> list[int]:
    """Merge the characters of one word by BPE, skipping each possible merge with probability `rate` at each step.

    A longer word is split after every `WINDOW` symbols, which only prevents merges across splits.
    """
    pieces = []
    for start in range(0, len(symbols), WINDOW):
        window = list(symbols[start : start + WINDOW])
        while True:
            # Dropout is sampled anew at each step, so a merge that is skipped now may be made later (algorithm 1).
            possible = [
                (*merges[pair], index)
                for index, pair in enumerate(pairwise(window))
                if pair in merges and rng.random() >= rate
            ]
            if not possible:
                break
            _, piece, index = min(possible)
            window[index : index + 2] = [piece]
        pieces += window
    return pieces


__all__ = ["BOS", "EOS", "MASK", "PAD", "UNK", "Tokenizer", "require_utf8"]


class Tokenizer:
    """A trained tokenizer: special tokens (ids 0 to 3, or 4), the 256 bytes if it has byte fallback, and pieces."""

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
        self.first_space = self._writing.first_space  # removed from the front of a decoded text; may be empty
        self._ids = self._library.get_vocab()
        self._names = {i: name for name, i in self._ids.items()}

        # The bytes that each id adds to a decoded text.
        spell = self._writing.spell
        self._token_bytes = {i: b"" if i < self.first_piece else spell(name) for i, name in self._names.items()}
        self._token_bytes |= {i: bytes([byte]) for byte, i in enumerate(self.byte_ids)}
        self._token_bytes[UNK] = self._writing.unknown

    @property
    def first_word(self) -> int:
        """The first id after special tokens and bytes; the id of the first byte if there are no other tokens."""
        return self.byte_ids.stop if len(self) > self.byte_ids.stop else self.first_piece

    def __len__(self) -> int:
        """Size of the vocabulary, special tokens included."""
        return len(self._ids)

    def encode(self, text: str) -> list[int]:
        """Encode a text as token ids, without special tokens."""
        return self._complete(text, self._encode(text).ids)

    def encode_with_places(self, text: str) -> tuple[list[int], list[CharacterSpan]]:
        """Encode a text as token ids, and return the span of characters that each token represents.

        A space belongs to the word after it. If several pieces, such as bytes, spell one character, each of them has
        the span of that character. Characters that normalisation merges or drops belong to the previous piece, up to
        the next space.
        """
        if self.byte_ids:  # the library does not spell unknown words in bytes for all models, but `_tokens` does
            parts = PreTokenizedString(require_utf8(text))
            parts.normalize(self._normalizer.normalize)
            self._splitter.pre_tokenize(parts)
            parts.tokenize(self._tokens)
            encoding = parts.to_encoding()
        else:
            encoding = self._encode(text)
        # A piece extends to the next begin that is not before its end: the bytes of a character all begin together.
        begins = [*(begin for begin, _ in encoding.offsets), len(text)]
        limits = [begins[bisect_left(begins, end)] for _, end in encoding.offsets]
        spans = []
        for (begin, end), limit in zip(encoding.offsets, limits, strict=True):
            next_space = next((index for index in range(end, limit) if text[index].isspace()), limit)
            spans.append((begin, max(end, next_space)))
        return encoding.ids, spans

    def unknown(self, text: str) -> list[str]:
        """Return the parts of a text that `encode` encodes as <unk>; adjacent parts are joined."""
        spans: list[CharacterSpan] = []
        for i, (begin, end) in zip(*self.encode_with_places(text), strict=True):
            if i == UNK and spans and spans[-1][1] == begin and not text[begin].isspace():
                spans[-1] = (spans[-1][0], end)
            elif i == UNK:
                spans.append((begin, end))
        return [text[begin:end].strip() for begin, end in spans]

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Encode texts as token ids, without special tokens, on all cores."""
        return list(self.encode_lines(texts))

    def encode_lines(self, lines: Iterable[str]) -> Iterator[list[int]]:
        """Encode a stream of lines as token ids on all cores, in order and in constant memory."""
        lines = iter(lines)
        while chunk := [require_utf8(line) for line in islice(lines, CHUNK)]:
            encodings = self._library.encode_batch_fast(chunk, add_special_tokens=False)
            yield from (self._complete(line, encoding.ids) for line, encoding in zip(chunk, encodings, strict=True))

    def encode_with_dropout(self, text: str, rate: float, rng: random.Random) -> list[int]:
        """Encode a text with BPE dropout (Provilkov et al. 2020): random pieces, which decode to the same text.

        Args:
            text: Any text.
            rate: The probability of skipping a merge: 0 gives `encode(text)`, 1 gives characters.
            rng: Random generator; the same state gives the same pieces.
        """
        if self.config.kind != "bpe":
            raise InputError(f'BPE dropout needs a tokenizer of kind "bpe", but this one is "{self.config.kind}"')
        if not 0 <= rate <= 1:
            raise InputError(f"the rate of BPE dropout must be a probability from 0 to 1, not {rate}")
        if rate == 0:
            return self.encode(text)
        words = map(self._characters, self._words(text))
        return [i for word in words for i in merge_with_dropout(word, self._merges, rate, rng)]

    def encode_continuation(self, text: str) -> list[int]:
        """Encode a text that continues another one: no space is added before its first word.

        A foreign tokenizer, such as one from SentencePiece, may add the space anyway.
        """
        words = self._cut(self._normal(text).removeprefix(self.first_space))
        return [i for word in words for i in self._ids_of_word(word)]

    def decode(self, ids: Iterable[int]) -> str:
        """Decode token ids to text; <pad>, <bos> and <eos> are skipped, <unk> is kept, invalid UTF-8 becomes U+FFFD."""
        text = self.spell(ids).decode("utf-8", errors="replace")
        return text.removeprefix(self.first_space).removesuffix(self._writing.last_space)

    def spell(self, ids: Iterable[int]) -> bytes:
        """Decode token ids to UTF-8, with the space before the first word.

        The bytes may begin or end inside a character.
        """
        return b"".join(self._bytes_of_each(ids))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return printable names of token ids: "▁" is a space; bytes and special tokens are in angle brackets."""
        ids = list(ids)
        return [name if i < self._reserved else _printable(name) for i, name in zip(ids, self.texts(ids), strict=True)]

    def texts(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each token id, with the space before it; bytes and special tokens are in angle brackets.

        In a piece that begins or ends inside a character, the bytes of that character become lone surrogates.
        """
        ids = list(ids)
        return [
            self._names[i] if i < self._reserved else token_bytes.decode("utf-8", errors="surrogateescape")
            for i, token_bytes in zip(ids, self._bytes_of_each(ids), strict=True)
        ]

    def word_of_piece(self, ids: Iterable[int]) -> list[int]:
        """Return the index of the word that each token belongs to; a special token is a word by itself."""
        parts = self._bytes_of_each(ids)
        # Find the byte offsets where words begin. A word begins where the previous one ends, so that spaces between
        # words belong to the next word. An invalid byte becomes a surrogate, and thus counts as one character.
        text = b"".join(parts).decode("utf-8", errors="surrogateescape")
        words = self._writing.splitter.pre_tokenize_str(re.sub("[\ud800-\udfff]", "\ufffd", text))
        offsets = list(accumulate((len(c.encode("utf-8", errors="surrogateescape")) for c in text), initial=0))
        starts = {0, *(offsets[last] for _, (_, last) in words)}

        numbers: list[int] = []
        number, offset, after_special = -1, 0, True
        for part in parts:
            is_special = not part
            number += is_special or after_special or offset in starts
            numbers.append(number)
            offset += len(part)
            after_special = is_special
        return numbers

    @property
    def digest(self) -> str:
        """SHA-256 of the tokenizer's saved files, in hex: tokenizers with equal digests encode equally."""
        return sha256_of(self.definition + self._description())

    def save(self, folder: Path) -> None:
        """Write the tokenizer to `folder`/tokenizer.json and `folder`/config.json, each atomically.

        Raises:
            InputError: The folder contains something other than a tokenizer.
            RunError: The folder cannot be written.
        """
        check_output_folder(folder)
        with named_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.files().items():
                with atomic_file(folder / name) as stream:
                    stream.write(content)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the files that `save` writes, by name."""
        return {DEFINITION: self.definition.encode("utf-8"), DESCRIPTION: self._description().encode("utf-8")}

    def _description(self) -> str:
        """Return the text of config.json: format, checksum of tokenizer.json, and settings."""
        settings = {key: value for key, value in asdict(self.config).items() if key not in RUN_SETTINGS}
        facts = {"format": FORMAT, "sha256": sha256_of(self.definition), "tokenizer": settings}
        return json.dumps(facts, indent=2) + "\n"

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Load a tokenizer from a folder that `save` wrote."""
        from heedful.text.allowed_definition import check_definition

        definition, config = read_folder(folder)
        file = folder / DEFINITION
        # Check before the library reads it: a definition from elsewhere may take unbounded time and memory.
        check_definition(definition, config, str(file))
        try:
            return cls(definition, config)
        except Exception as error:  # the library has no narrower exception
            raise InputError(
                f"{file}: the installed tokenizers {tokenizers.__version__} cannot read it ({error}); update them: pip "
                "install -U tokenizers"
            ) from error

    @cached_property
    def _merges(self) -> RankedMerges:
        pairs, ids = json.loads(self.definition)["model"]["merges"], self._ids
        return {(ids[a], ids[b]): (rank, ids[a + b]) for rank, (a, b) in enumerate(pairs)}

    def _words(self, text: str) -> list[str]:
        return self._cut(self._normal(text))

    def _normal(self, text: str) -> str:
        return self._normalizer.normalize_str(require_utf8(text)) if self._normalizer else require_utf8(text)

    def _cut(self, normal: str) -> list[str]:
        return [word for word, _ in self._splitter.pre_tokenize_str(normal)]

    def _encode(self, text: str) -> Encoding:
        return self._library.encode(require_utf8(text), add_special_tokens=False)

    def _complete(self, text: str, ids: list[int]) -> list[int]:
        """Return `ids` with the characters and bytes of unknown words in place of <unk>, given byte fallback."""
        if UNK not in ids or not self.byte_ids:
            return ids
        # For a word or WordPiece model, the library returns one <unk> for an unknown word, even with byte fallback.
        words = self._words(text)
        ids_of = {word: self._ids_of_word(word) for word in set(words)}
        return [i for word in words for i in ids_of[word]]

    def _ids_of_word(self, word: str) -> list[int]:
        ids = [token.id for token in self._model.tokenize(word)]
        return self._characters(word) if UNK in ids and self.byte_ids else ids

    def _tokens(self, word: str) -> list[Token]:
        """Return the pieces of a word with their byte offsets in the word."""
        ids = self._ids_of_word(word)
        offsets = pairwise(accumulate((len(self._token_bytes[i]) for i in ids), initial=0))
        return [Token(i, self._names[i], offset) for i, offset in zip(ids, offsets, strict=True)]

    def _characters(self, word: str) -> list[int]:
        """Spell a word: each character as its id, else as the ids of its bytes, else as <unk>."""
        ids: list[int] = []
        for character in word:
            piece = self._ids.get(character)
            if piece is not None:
                ids.append(piece)
            elif self.byte_ids:
                ids.extend(self.byte_ids[byte] for byte in character.encode("utf-8"))
            else:
                ids.append(UNK)
        return ids

    def _bytes_of_each(self, ids: Iterable[int]) -> list[bytes]:
        try:
            return [self._token_bytes[i] for i in ids]
        except KeyError as error:
            raise InputError(f"id {error} is not in the vocabulary, whose ids go from 0 to {len(self) - 1}") from error


def require_utf8(text: str) -> str:
    """Return a text unchanged if it can be encoded in UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"character {error.start + 1} of the text is a lone surrogate (U+{ord(text[error.start]):04X}), half of a "
            'character; decode the text again, with errors="replace" where it is damaged'
        ) from error
    return text


def _printable(text: str) -> str:
    characters = []
    for character in text.replace(" ", "▁"):
        if character.isprintable():
            characters.append(character)
        elif "\udc80" <= character <= "\udcff":  # a byte of an incomplete character
            characters.append(f"<0x{ord(character) - 0xDC00:02X}>")
        else:
            characters.append(character.encode("unicode_escape").decode("ascii"))
    return "".join(characters)


@dataclass(frozen=True, kw_only=True)
class TokenizerDescription:
    """The contents of config.json in a tokenizer folder: format, checksum and settings."""

    format: int
    sha256: str  # checksum of tokenizer.json
    tokenizer: TokenizerConfig


def sha256_of(text: str) -> str:
    """Return the SHA-256, in hex, of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def check_output_folder(folder: Path) -> None:
    """Check that a tokenizer can be written to a folder without overwriting something else."""
    if folder.is_dir() and any(folder.iterdir()):
        try:
            read_folder(folder)
        except InputError as error:
            raise InputError(
                f"{folder} is not empty and does not contain an intact tokenizer; choose another folder"
            ) from error
    elif folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the tokenizer")


def read_folder(folder: Path) -> tuple[str, TokenizerConfig]:
    """Read a tokenizer folder: the text of tokenizer.json, and the configuration from config.json."""
    definition = _read_text(folder / DEFINITION)
    try:
        description = TypeAdapter(TokenizerDescription).validate_json(_read_text(folder / DESCRIPTION), strict=True)
    except ValidationError as error:
        raise InputError(
            f"{folder / DESCRIPTION}: damaged, or not written by heedful; copy the tokenizer again, or train one with "
            "`heedful tokenizer train`"
        ) from error
    if description.format != FORMAT:
        raise InputError(
            f"{folder / DESCRIPTION}: has format {description.format}, but this version of heedful reads format "
            f"{FORMAT}; update heedful"
        )
    if description.sha256 != sha256_of(definition):
        raise InputError(
            f"{folder / DEFINITION}: is not the file that {DESCRIPTION} next to it describes (different checksum): "
            "damaged or edited; copy the tokenizer again"
        )
    return definition, description.tokenizer


def _read_text(file: Path) -> str:
    try:
        return read_small(file, MAX_FILE).decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{file}: the file does not exist; a tokenizer is a folder with {DEFINITION} and {DESCRIPTION}, such as "
            "`heedful tokenizer train` writes"
        ) from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: damaged, or not a tokenizer (not UTF-8); copy the tokenizer again") from error
