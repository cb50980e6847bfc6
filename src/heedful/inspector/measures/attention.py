"""Measures of attention heads and of cross-attention: entropy, distance, weights by word, alignment error, boxes.

L layers, H heads, T queries or target pieces, S keys or source pieces, P coordinates or pieces, W words.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import output, reading
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.sources import ImageInput, Input, MediaInput, Pieces, Writer
from heedful.wording import counted

Measure = Callable[[Tensor], Tensor]


def offset(weights: Float[Tensor, "H T S"], distance: int) -> Float[Tensor, " H"]:
    """Compute the mean attention weight on the key `distance` positions after the query (before, if negative).

    The mean is over the queries that have such a key; 0 if there are none.
    """
    # (H, T, S) -> the weights of query t on key t + distance, (H, queries with such a key)
    shifted = weights.diagonal(distance, -2, -1)
    return shifted.sum(-1) / max(1, shifted.size(-1))


def distance(weights: Float[Tensor, "H S S"], places: Float[Tensor, "S P"]) -> Float[Tensor, " H"]:
    """Compute the mean distance from a query to its keys, weighted by attention, relative to uniform attention.

    It is near 0 for a head that attends locally, and 1 for uniform attention. Figure 7 of Dosovitskiy et al. 2021
    shows it in pixels. Class tokens, whose position is NaN, are left out. It is 0 if there is a single position.
    """
    real = ~places.isnan().any(-1)
    distances = torch.cdist(places[real], places[real])
    weights = weights[:, real][..., real]
    reached = (weights * distances).sum((-2, -1)) / weights.sum((-2, -1)).clamp(min=torch.finfo(weights.dtype).tiny)
    # Uniform attention has the mean of all distances.
    return reached / distances.mean().clamp(min=torch.finfo(distances.dtype).tiny)


# Measures of weights (H T S), one number per head, as means over the queries.
COMMON: dict[str, Measure] = {
    "entropy": lambda weights: torch.special.entr(weights).sum(-1).mean(-1),  # nats; log S for uniform attention
    "first": lambda weights: weights[..., 0].mean(-1),  # often an attention sink (Xiao et al. 2024)
    "last": lambda weights: weights[..., -1].mean(-1),  # <eos> if the sequence has one
}
MEASURES: dict[str, dict[str, Measure]] = {
    "self": COMMON
    | {
        "itself": partial(offset, distance=0),
        "previous": partial(offset, distance=-1),
        "following": partial(offset, distance=1),  # 0 under a causal mask
    },
    "cross": COMMON,
}


@dataclass(frozen=True)
class AlignedAttention:
    """Cross-attention weights of all decoder layers and heads for one source and its output.

    Row t of `weights` belongs to the prediction of target piece t, and sums to 1.
    """

    layers: list[int]  # from 1; a recurrent decoder has cross-attention only in its last layer
    source: Pieces  # tokens, patches or frames
    target: Pieces
    weights: Float[Tensor, "L H T S"]
    media: MediaInput | None = None

    def by_word(self) -> Float[Tensor, "L H T2 S2"]:
        """Return the weights by word: summed over the pieces of a source word, averaged over those of a target word."""
        columns, rows = (  # pieces x words: 1 where the piece is part of the word
            one_hot(torch.tensor(pieces.word_of_piece), len(pieces.words)).to(self.weights)
            for pieces in (self.source, self.target)
        )
        # (words, T) @ (L, H, T, S) @ (S, words) -> (L, H, words, words)
        return (rows / rows.sum(0)).T @ self.weights @ columns


def cross_attention(subject: Writer, source: Input, target: str | None = None) -> AlignedAttention:
    """Record the cross-attention weights of all decoder layers and heads for an output.

    The decoder reads the whole output in one forward pass (teacher forcing); the weights are the same as in
    token-by-token generation.

    Args:
        subject: The translator, captioner or transcriber.
        source: One sentence; or the bytes of an image or audio file, its path, or an array.
        target: Translation, caption or transcript; None for the model's own output.
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
    """Select the cross-attention of one layer and head, or the mean of a layer's heads; return it with a title.

    If no layer is given, the one with the lowest mean entropy is selected.
    """
    heads = weights.size(1)
    if layer is not None and layer not in layers:
        available = f"{counted(len(layers), 'layers')}: {', '.join(map(str, layers))}"
        raise InputError(f"--layer {layer}: the decoder has cross-attention in {available}")
    if head is not None and not 1 <= head <= heads:
        raise InputError(f"--head {head}: the decoder has {counted(heads, 'heads')}, counted from 1")
    entropy = torch.special.entr(weights).sum(-1).mean((1, 2))
    index = int(entropy.argmin()) if layer is None else layers.index(layer)
    name = f"Cross-attention, layer {layers[index]}"
    if head is None:
        return weights[index].mean(0), f"{name}, mean of {counted(heads, 'heads')}"
    return weights[index, head - 1], f"{name}, head {head}"


def alignment_error(weights: Float[Tensor, "L H T S"], gold: Collection[tuple[int, int]]) -> Float[Tensor, "L H"]:
    """Compute the alignment error rate of each attention head against a gold word alignment (Och & Ney 2003).

    Each target word is aligned to the source word with the largest weight. All gold links are sure links: the rate is
    1 - 2 |A & G| / (|A| + |G|) for the links A of a head and G of the gold alignment; 0 is perfect.
    """
    links = torch.zeros(weights.shape[2:], dtype=torch.bool)
    for source, target in gold:
        links[target, source] = True
    targets = torch.arange(len(links))
    # One link per target word, so that |A| is their number.
    common = links[targets, weights.argmax(-1)].sum(-1)
    return 1 - 2 * common / (len(links) + links.sum())


WordBox = Sequence[Any]  # first character, the one after the last, and [left, top, right, bottom] in pixels or None


@dataclass(frozen=True)
class BoxMass:
    """Cross-attention inside the box of one word of a caption.

    Attributes:
        word: The word.
        mass: Attention weight inside the box for each layer and head, from 0 to 1: the mean over the pieces of the
            word. A patch that is partly inside contributes its weight times the share of its area inside.
        chance: Weight of uniform attention inside the box; without a class token, the box's share of the image.
    """

    word: str
    mass: Float[Tensor, "L H"]
    chance: float


def box_masses(subject: Writer, image: Input, caption: str, boxes: Sequence[WordBox]) -> list[BoxMass]:
    """Measure, for each word with a box, the share of its cross-attention that lies inside the box.

    The decoder reads the caption (teacher forcing). `heedful shapes` writes captions and boxes, under "boxes".

    Args:
        subject: The captioner of images.
        image: The bytes of a file, its path, or pixels; at the size that the model reads.
        caption: The text about the image.
        boxes: For each word, its first character, the one after its last, and the box of its object or None; words
            without a box are left out.
    """
    attention = cross_attention(subject, image, caption)
    if not isinstance(attention.media, ImageInput):
        raise InputError("boxes are for images, but the model reads audio")
    # A token covers the characters from the end of the previous token to its own end.
    tokenizer, ids = subject.tokenizers.target, attention.target.ids[:-1]
    if (decoded := tokenizer.decode(ids)) != caption:
        raise InputError(f"the model writes {caption!r} as {decoded!r}, so the words of the caption cannot be located")
    spans = list(pairwise([0, *(len(tokenizer.decode(ids[: count + 1])) for count in range(len(ids)))]))
    masses = []
    for begin, end, box in boxes:
        pieces = [i for i, (first, last) in enumerate(spans) if first < end and begin < last]
        if box is None or not pieces:
            continue
        shares = torch.from_numpy(attention.media.shares(box))
        # (L, H, pieces, S) @ (S,) -> (L, H, pieces) -> (L, H)
        mass = (attention.weights[:, :, pieces] @ shares).mean(-1)
        masses.append(BoxMass(caption[begin:end], mass, float(shares.mean())))
    return masses
