"""Sources of a forward pass: a text as token ids, a picture as patches, a sound as frames, each position with a label.

B = 1 batch, N tokens, rows of pixels or frames, F features of a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from heedful.config.schema import DecodeConfig
from heedful.data.media.medium import padded
from heedful.decode.captioner import Captioner
from heedful.decode.inference import evaluating
from heedful.decode.inputs import described
from heedful.decode.media_reader import MediaReader
from heedful.decode.speech_rules import SpeechRules, SpeechState
from heedful.decode.transcriber import Transcriber
from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.inspector.capture.media_inputs import MediaInput, media_input
from heedful.inspector.capture.pieces import Pieces
from heedful.models.model import DecodingState, SourceToTarget
from heedful.text.tokenizer import EOS, Tokenizer

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
