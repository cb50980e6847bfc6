"""Attention heads and cross-attention: entropy, distance, weight on pieces and words, alignment error, gold boxes.

L layers, H heads, T queries or target pieces, S keys or source pieces, P coordinates or pieces, W words.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import output, reading
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.sources import Input, MediaInput, PictureInput, Pieces, Writer
from heedful.text.tokenizer import Tokenizer
from heedful.wording import counted

Measure = Callable[[Tensor], Tensor]


def entropy(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean entropy of the attention weights of a query, in nats: 0 for one key, log S for uniform attention."""
    return torch.special.entr(weights).sum(-1).mean(-1)


def offset(weights: Float[Tensor, "H T S"], distance: int) -> Float[Tensor, " H"]:
    """Mean attention weight on the key `distance` positions after the query; negative distances look back.

    The mean is over the queries that have such a key; 0 if no query has one.
    """
    shifted = weights.diagonal(distance, -2, -1)
    return shifted.sum(-1) / max(1, shifted.size(-1))


def first(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the first key, which often serves as an attention sink (Xiao et al. 2024)."""
    return weights[..., 0].mean(-1)


def last(weights: Float[Tensor, "H T S"]) -> Float[Tensor, " H"]:
    """Mean attention weight on the last key, which is <eos> if the sequence has one."""
    return weights[..., -1].mean(-1)


def distance(weights: Float[Tensor, "H S S"], places: Float[Tensor, "S P"]) -> Float[Tensor, " H"]:
    """Mean distance from a query to what it attends to, as a share of that of even attention.

    Near 0 for a head that looks at the surroundings of each patch or frame, 1 for one that looks at the whole; in
    pixels, this is figure 7 of Dosovitskiy et al. 2021. Class tokens count neither as queries nor as keys: their place
    is NaN. It is 0 where there is one place alone.
    """
    real = ~places.isnan().any(-1)
    apart = torch.cdist(places[real], places[real])
    weights = weights[:, real][..., real]
    reached = (weights * apart).sum((-2, -1)) / weights.sum((-2, -1)).clamp(min=torch.finfo(weights.dtype).tiny)
    return reached / apart.mean().clamp(min=torch.finfo(apart.dtype).tiny)


ANYWHERE: dict[str, Measure] = {"entropy": entropy, "first": first, "last": last}
MEASURES: dict[str, dict[str, Measure]] = {
    "self": ANYWHERE
    | {
        "itself": partial(offset, distance=0),
        "previous": partial(offset, distance=-1),
        "following": partial(offset, distance=1),  # 0 under a causal mask
    },
    "cross": ANYWHERE,
}


@dataclass(frozen=True)
class AlignedAttention:
    """Cross-attention weights of all decoder layers and heads for one source and its output.

    Row t of `weights` belongs to the prediction of target piece t, and sums to 1.
    """

    layers: list[int]  # from 1; a recurrent decoder has cross-attention in its last layer alone
    source: Pieces  # or the patches or frames of the source
    target: Pieces
    weights: Float[Tensor, "L H T S"]
    media: MediaInput | None = None

    def by_word(self) -> Float[Tensor, "L H T2 S2"]:
        """Cross-attention weights between words: summed over source pieces, averaged over target pieces of a word."""
        columns, rows = (_membership(pieces).to(self.weights) for pieces in (self.source, self.target))
        return (rows / rows.sum(0)).T @ self.weights @ columns


def _membership(pieces: Pieces) -> Int[Tensor, "P W"]:
    """1 for each piece and the word that it is part of."""
    return one_hot(torch.tensor(pieces.word_of_piece), len(pieces.words))


def cross_attention(subject: Writer, source: Input, target: str | None = None) -> AlignedAttention:
    """Record the cross-attention weights of all decoder layers and heads for a translation or caption.

    The decoder reads the whole output in one forward pass (teacher forcing), with the same weights as in
    generation token by token.

    Args:
        subject: The translator or captioner.
        source: One sentence; or for a captioner the bytes of a file, its path, or an array.
        target: Translation or caption; None: the model's own output.

    Raises:
        InputError: The source is empty, source or target is too long for the model, or a file cannot be read.
    """
    forward = reading(subject, source, target)
    with recording(forward.model, ["dec.*.cross.attn"]) as recorded:
        output(forward)
    weights = torch.cat(list(recorded.values())).float().cpu()
    layers = [int(name.split(".")[1]) + 1 for name in recorded]
    return AlignedAttention(layers, forward.lines["src"].read, forward.lines["tgt"].said, weights, forward.media)


def view(
    weights: Float[Tensor, "L H T S"], layers: list[int], layer: int | None = None, head: int | None = None
) -> tuple[Float[Tensor, "T S"], str]:
    """Choose the cross-attention matrix of one layer and head, or the mean of a layer, and a title for it."""
    heads = weights.size(1)
    if layer is not None and layer not in layers:
        there = f"{counted(len(layers), 'layers')}: {', '.join(map(str, layers))}"
        raise InputError(f"layer {layer}: the decoder has cross-attention in {there}")
    if head is not None and not 1 <= head <= heads:
        raise InputError(f"head {head}: the decoder has {counted(heads, 'heads')}, counted from 1")
    place = sharpest(weights) if layer is None else layers.index(layer)
    name = f"Cross-attention, layer {layers[place]}"
    if head is None:
        return weights[place].mean(0), f"{name}, mean of {counted(heads, 'heads')}"
    return weights[place, head - 1], f"{name}, head {head}"


def sharpest(weights: Float[Tensor, "L H T S"]) -> int:
    """Index of the layer, from 0, whose attention has the lowest mean entropy over heads and targets."""
    return int(torch.special.entr(weights).sum(-1).mean((1, 2)).argmin())


def alignment_error(weights: Float[Tensor, "L H T S"], gold: Collection[tuple[int, int]]) -> Float[Tensor, "L H"]:
    """Alignment error rate of each attention head against a gold word alignment (Och & Ney 2003).

    Each target word is aligned to the source word with the largest weight. All gold links count as sure links: the rate
    is 1 - 2 |A & G| / (|A| + |G|) for the links A of a head and G of the gold alignment; 0 is perfect.
    """
    links = torch.zeros(weights.shape[2:], dtype=torch.bool)
    for source, target in gold:
        links[target, source] = True
    targets = torch.arange(len(links))
    common = links[targets, weights.argmax(-1)].sum(-1)
    return 1 - 2 * common / (len(links) + links.sum())


WordBox = Sequence[Any]  # first character, the one after the last, and [left, top, right, bottom] in pixels or None


@dataclass(frozen=True)
class BoxMass:
    """Cross-attention inside the box of one word of a caption.

    Attributes:
        word: the word.
        mass: attention weight inside the box for each layer and head, from 0 to 1: the mean over the pieces of the
            word. A patch that is partly in the box counts with that share of its weight.
        chance: what even attention over all positions of the encoder would have inside the box; without a class token
            the share of the image that the box covers.
    """

    word: str
    mass: Float[Tensor, "L H"]
    chance: float


def box_masses(subject: Writer, picture: Input, caption: str, boxes: Sequence[WordBox]) -> list[BoxMass]:
    """Measure for each word with a box how much of the cross-attention that predicts it lies inside its box.

    The decoder is given the caption (teacher forcing). `heedful shapes` writes captions and boxes, under "boxes".

    Args:
        subject: the captioner of images.
        picture: the bytes of a file, its path, or pixels; of the size at which the model reads images.
        caption: the text about the image.
        boxes: first character of a word, the character after its last, and the box of the object or None; the words
            without a box are left out.

    Raises:
        InputError: the file cannot be read or is not an image, or the caption cannot be written in the model's tokens.
    """
    attention = cross_attention(subject, picture, caption)
    if not isinstance(attention.media, PictureInput):
        raise InputError("boxes are of pictures, and the model reads sound")
    # A token covers the characters from the end of the one before it to its own.
    ends = piece_ends(subject.tokenizers.target, attention.target.ids[:-1], caption)
    spans = list(pairwise([0, *ends]))
    masses = []
    for begin, end, box in boxes:
        pieces = [i for i, (first, last) in enumerate(spans) if first < end and begin < last]
        if box is None or not pieces:
            continue
        shares = torch.from_numpy(attention.media.shares(box))
        mass = (attention.weights[:, :, pieces] @ shares).mean(-1)
        masses.append(BoxMass(caption[begin:end], mass, float(shares.mean())))
    return masses


def piece_ends(tokenizer: Tokenizer, ids: list[int], text: str) -> list[int]:
    """Number of characters of a text up to the end of each of its tokens."""
    if (spelled := tokenizer.decode(ids)) != text:
        raise InputError(f"the model spells {text!r} as {spelled!r}, so that its words have no place there")
    return [len(tokenizer.decode(ids[: count + 1])) for count in range(len(ids))]
