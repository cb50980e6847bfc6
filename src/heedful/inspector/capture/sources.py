"""Sources of a forward pass: a text as token ids, a picture as patches, a sound as frames, each position with a label.

B = 1 batch, N tokens, rows of pixels or frames, F features of a row.
"""

from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from heedful.data.media import padded
from heedful.decode.captioner import Captioner
from heedful.decode.media_reader import MediaReader
from heedful.decode.predictor import described
from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.inspector.capture.media_inputs import MediaInput, media_input
from heedful.inspector.capture.pieces import Pieces
from heedful.text.tokenizer import EOS

Given = str | bytes | Path | np.ndarray  # a text; a picture or sound as the bytes of a file, a file, pixels or samples
Writer = Translator | Captioner  # a predictor that reads a source and writes tokens


@dataclass(frozen=True)
class Source:
    """What a model reads in a forward pass: one text, picture or sound.

    Attributes:
        inputs: what the input layer of the model takes.
        padding_mask: True everywhere, as there is no padding.
        read: labels of the positions that the input layer makes of it.
        limit: the most tokens that a search writes about it, <eos> counted; 0 for a model that writes nothing.
        longest: a given output has fewer tokens than this, without <eos>.
        media: the picture or sound; None for a text.
    """

    inputs: Shaped[Tensor, "B N *F"]
    padding_mask: Bool[Tensor, "B N"]
    read: Pieces
    limit: int = 0
    longest: int = 0
    media: MediaInput | None = None


@singledispatch
def source_of(subject: Any, given: Given) -> Source:
    """Prepare what a translator or a captioner reads.

    Raises:
        InputError: a text is too long, a picture or sound cannot be read, or the model reads something else.
    """
    raise InputError(f"a {type(subject).__name__} reads no source, of which it got {described(given)}")


@source_of.register
def _(subject: Translator, given: Given) -> Source:
    ids = subject.tokenizers.source.encode(as_text(given))
    check_length(ids, subject.longest_source)
    inputs = torch.tensor([[*ids, EOS]], device=subject.device)
    extra = subject.config.max_extra
    return Source(
        inputs,
        torch.ones_like(inputs, dtype=torch.bool),
        Pieces.of([*ids, EOS], subject.tokenizers.source),
        limit=len(ids) + extra,
        longest=subject.longest_source + extra,
    )


@source_of.register
def _(subject: Captioner, given: Given) -> Source:
    most = subject.config.max_extra
    return media_source(subject.reader, given, limit=most, longest=most + 1)


def media_source(reader: MediaReader, given: Given, limit: int = 0, longest: int = 0) -> Source:
    """Prepare what a model reads of a picture or sound; `limit` and `longest` as in `Source`.

    Raises:
        InputError: it is a text, or cannot be read.
    """
    found = decoded(reader, given)
    inputs, padding_mask = padded([reader.medium.features(found)])
    media = media_input(reader.medium, found)
    device = next(reader.model.parameters()).device
    return Source(inputs.to(device), padding_mask.to(device), Pieces.numbered(media.labels), limit, longest, media)


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
