"""Sources of a forward pass: a text as token ids, an image as patches, audio as frames, each position with a label."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from heedful.architectures.model import DecodingState, SourceToTarget, evaluating
from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.inspector.capture.media_inputs import MediaInput, media_input
from heedful.media.modality import padded
from heedful.predictors.captioner import Captioner
from heedful.predictors.media_reader import MediaReader
from heedful.predictors.predictor import described
from heedful.predictors.speech import SpeechRules, SpeechState
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import EOS, Tokenizer

# Prefixes of the Unicode names of letters in scripts without spaces between words.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Pieces:
    """Token ids of a text with labels for pieces and words; in scripts without spaces each piece is a word."""

    ids: list[int]
    labels: list[str]  # one for each piece
    words: list[str]
    word_of_piece: list[int]  # index into words

    @classmethod
    def numbered(cls, labels: list[str]) -> "Pieces":
        """Label positions that are no tokens, such as patches: their ids are their numbers, and each is a word."""
        numbers = list(range(len(labels)))
        return cls(ids=numbers, labels=labels, words=labels, word_of_piece=numbers)

    @classmethod
    def of(cls, ids: list[int], tokenizer: Tokenizer) -> "Pieces":
        """Label token ids with their pieces and words."""
        spelled = words_of(ids, tokenizer)
        return cls(
            ids=ids,
            labels=tokenizer.pieces(ids),
            words=[label(word, tokenizer) for word in spelled],
            word_of_piece=[number for number, word in enumerate(spelled) for _ in word],
        )


def words_of(ids: list[int], tokenizer: Tokenizer) -> list[list[int]]:
    """Group token ids into words: a list of ids for each word."""
    words: list[list[int]] = []
    numbers = tokenizer.word_of_piece(ids)
    for i, number, before in zip(ids, numbers, [None, *numbers], strict=False):
        if number != before or stands_alone(tokenizer.decode([i])):
            words.append([])
        words[-1].append(i)
    return words


def stands_alone(piece: str) -> bool:
    """True if a piece begins with a letter of a script without spaces, such as Chinese or Thai."""
    return unicodedata.name(piece[:1] or " ", "").startswith(UNSPACED)


def label(word: list[int], tokenizer: Tokenizer) -> str:
    """Text of a word given by its token ids; the names of the pieces if the decoded text is blank."""
    return tokenizer.decode(word).strip() or "".join(tokenizer.pieces(word))


Given = str | bytes | Path | np.ndarray  # a text; a picture or sound as the bytes of a file, a file, pixels or samples
Writer = Translator | Captioner | Transcriber  # a predictor that reads a source and writes tokens


@dataclass(frozen=True)
class Source:
    """Source of a forward pass: the text, the picture or the sound that the model reads.

    Attributes:
        inputs: what the input layer of the model takes.
        padding_mask: True everywhere, as there is no padding.
        read: labels of the positions that the input layer makes of it.
        media: the picture or sound; None for a text.
    """

    inputs: Shaped[Tensor, "B N *F"]
    padding_mask: Bool[Tensor, "B N"]
    read: Pieces
    media: MediaInput | None = None


@dataclass(frozen=True)
class Writing:
    """Start of a search by an encoder-decoder: the source, the settings, and the tokens that it begins with.

    Attributes:
        model: the model.
        tokenizer: the tokenizer of what is written.
        config: settings of the search.
        source: what is read.
        limit: the most tokens that a search writes, <eos> counted.
        longest: a given output has fewer tokens than this, without <eos>.
        rules: rules of speech for the tokens of a transcript; None: there are none.
        prompt: tokens behind <bos> that the decoder is given before it writes, such as a language.
    """

    model: SourceToTarget
    tokenizer: Tokenizer
    config: DecodeConfig
    source: Source
    limit: int
    longest: int
    rules: SpeechRules | None = None
    prompt: tuple[int, ...] = ()

    def begin(self) -> DecodingState:
        """Encode the source and feed the prompt; return the decoding state before the first token of the output."""
        state = self.model.start(self.source.inputs, self.source.padding_mask)
        return state if self.rules is None else prompted(SpeechState(state, self.rules), self.prompt)


@singledispatch
def writing(subject: Any, given: Given) -> Writing:
    """Prepare what a translator, captioner or transcriber reads and writes.

    Raises:
        InputError: a text is too long, a picture or sound cannot be read, or the model reads something else.
    """
    raise InputError(f"a {type(subject).__name__} writes nothing about a source, such as {described(given)}")


@writing.register
def _(subject: Translator, given: Given) -> Writing:
    ids = subject.tokenizers.source.encode(as_text(given))
    check_length(ids, subject.longest_source)
    inputs = torch.tensor([[*ids, EOS]], device=subject.device)
    read = Pieces.of([*ids, EOS], subject.tokenizers.source)
    source = Source(inputs, torch.ones_like(inputs, dtype=torch.bool), read)
    most = subject.longest_output(len(ids)), subject.longest_output(subject.longest_source)
    return Writing(subject.model, subject.tokenizers.target, subject.config, source, *most)


@writing.register
def _(subject: Captioner, given: Given) -> Writing:
    most, source = subject.longest_output, media_source(subject, given)
    return Writing(subject.model, subject.tokenizers.target, subject.config, source, most, most + 1)


@writing.register
def _(subject: Transcriber, given: Given) -> Writing:
    model, settings, source = subject.model, subject.settings, media_source(subject, given)
    rules = SpeechRules.of(subject.tokens, settings.transcribe, range(0), len(subject.tokenizer)).to(subject.device)
    with evaluating(model):
        prompt = speech_prompt(subject, SpeechState(model.start(source.inputs, source.padding_mask), rules))
    limit = len(source.read.ids) + settings.decode.extra
    if (room := model.max_target_positions()) is not None:
        limit = min(limit, room - 1 - len(prompt))
    return Writing(model, subject.tokenizer, settings.decode, source, limit, limit + 1, rules, prompt)


def prompted(state: SpeechState, prompt: Sequence[int]) -> SpeechState:
    """Feed <bos> and a prompt, but for the last token of these, which a search feeds first."""
    for token in prompt:
        state.prompt()
        state.begin = torch.full_like(state.begin, token)
    return state


@torch.no_grad()
def speech_prompt(subject: Transcriber, state: SpeechState) -> tuple[int, ...]:
    """Tokens of a transcript behind <bos>: the language, which is heard if it is not given, and without time stamps."""
    tokens, transcribe = subject.tokens, subject.settings.transcribe
    spoken: list[int | None] = []
    if transcribe.languages:
        heard = state.prompt()[0, [tokens.languages[code] for code in transcribe.languages]]
        language = transcribe.language or transcribe.languages[int(heard.argmax())]
        spoken = [tokens.languages[language], tokens.transcribe]
    return tuple(token for token in (*spoken, tokens.without_times) if token is not None)


def decoding_of(subject: Writer) -> DecodeConfig:
    """Settings of the search of a translator, captioner or transcriber."""
    return subject.settings.decode if isinstance(subject, Transcriber) else subject.config


def reader_of(subject: Any) -> MediaReader:
    """Reader of the files of a predictor of pictures or sound."""
    return MediaReader(subject.model, subject.settings) if isinstance(subject, Transcriber) else subject.reader


def media_source(subject: Any, given: Given) -> Source:
    """Prepare what a predictor of pictures or sound reads.

    Raises:
        InputError: it is a text, or cannot be read.
    """
    reader = reader_of(subject)
    found = decoded(reader, given)
    inputs, padding_mask = padded([reader.medium.features(found)])
    media = media_input(reader.medium, found)
    return Source(inputs.to(subject.device), padding_mask.to(subject.device), Pieces.numbered(media.labels), media)


def decoded(reader: MediaReader, given: Given) -> np.ndarray:
    """Decode a picture or sound: the bytes of a file, its path, or an array of pixels or samples.

    A string is never taken for the name of a file, so that whoever sends one to a server cannot open its files.

    Raises:
        InputError: it is a text, or cannot be read.
    """
    if isinstance(given, str):
        raise InputError(f"the model reads no text, but a {reader.medium.noun}; give a file")
    return reader.decoded(given)


def as_text(given: Given) -> str:
    """Return what is given to a model of text.

    Raises:
        InputError: it is a file.
    """
    if not isinstance(given, str):
        raise InputError("the model reads text, and no file; give a text")
    return given


def check_length(ids: list[int], limit: int, what: str = "a text") -> None:
    """Raise an InputError if the token ids and <eos> together exceed `limit`; `what` names the text in the message."""
    if len(ids) >= limit:
        raise InputError(f"{what} of {len(ids)} tokens, and the model takes {limit - 1}; give one sentence")
