"""Cross-attention inside gold boxes: does a captioner look at the object whose word it writes?

L decoder layers, H heads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import tokenizers_of
from heedful.inspector.capture.media_inputs import PictureInput
from heedful.inspector.capture.sources import Given, Writer
from heedful.inspector.measures.attention import cross_attention
from heedful.text.tokenizer import Tokenizer

WordBox = Sequence[Any]  # first character, the one behind the last, and [left, top, right, bottom] in pixels or None


@dataclass(frozen=True)
class BoxMass:
    """Cross-attention inside the box of one word of a caption.

    Attributes:
        word: the word.
        mass: attention weight inside the box for each layer and head, from 0 to 1: the mean over the pieces of the
            word. A patch that lies partly in the box counts with that share of its weight.
        chance: what even attention over all positions of the encoder would have inside the box; without a class token
            the share of the picture that the box covers.
    """

    word: str
    mass: Float[Tensor, "L H"]
    chance: float


def box_masses(subject: Writer, picture: Given, caption: str, boxes: Sequence[WordBox]) -> list[BoxMass]:
    """Measure for each word with a box how much of the cross-attention that predicts it lies inside its box.

    The decoder is given the caption (teacher forcing). `heedful shapes` writes captions and boxes, under "boxes".

    Args:
        subject: the captioner of pictures.
        picture: the bytes of a file, its path, or pixels; of the size at which the model reads pictures.
        caption: the text about the picture.
        boxes: first character of a word, the character behind its last, and the box of the object or None; the words
            without a box are left out.

    Raises:
        InputError: the file cannot be read or is no picture, or the caption cannot be written in the model's tokens.
    """
    seen = cross_attention(subject, picture, caption)
    if not isinstance(seen.media, PictureInput):
        raise InputError("boxes are of pictures, and the model reads sound")
    ends = piece_ends(tokenizers_of(subject).target, seen.target.ids[:-1], caption)
    found = []
    for begin, end, box in boxes:
        pieces = [i for i, (first, last) in enumerate(spans(ends)) if first < end and begin < last]
        if box is None or not pieces:
            continue
        shares = torch.from_numpy(seen.media.shares(box))
        mass = (seen.weights[:, :, pieces] @ shares).mean(-1)
        found.append(BoxMass(caption[begin:end], mass, float(shares.mean())))
    return found


def piece_ends(tokenizer: Tokenizer, ids: list[int], text: str) -> list[int]:
    """Number of characters of a text up to the end of each of its tokens.

    Raises:
        InputError: the tokens spell another text, as where the vocabulary lacks a word.
    """
    if (spelled := tokenizer.decode(ids)) != text:
        raise InputError(f"the model spells {text!r} as {spelled!r}, so that its words have no place there")
    return [len(tokenizer.decode(ids[: count + 1])) for count in range(len(ids))]


def spans(ends: list[int]) -> Iterator[tuple[int, int]]:
    """First character of each token, and the one behind its last, from the ends of all tokens."""
    yield from zip([0, *ends], ends, strict=False)
