"""Cross-attention weights of a translator or captioner by piece and by word, and their alignment error rate.

L decoder layers, H heads, T target pieces or words, S source pieces, words, patches or frames.
"""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from heedful.decode.inference import evaluating
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import reading
from heedful.inspector.capture.media_inputs import MediaInput
from heedful.inspector.capture.pieces import Pieces
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.sources import Given, Writer
from heedful.wording import counted


@dataclass(frozen=True)
class AlignedAttention:
    """Cross-attention weights of all decoder layers and heads for one source and its output.

    Row t of `weights` belongs to the prediction of target piece t, and sums to 1.

    Attributes:
        layers: numbers of the decoder layers, from 1; a recurrent decoder has cross-attention in its last layer alone.
        source: pieces of the source; or its patches or frames.
        target: pieces of the output.
        weights: attention of each target piece.
        media: the picture or sound; None for a text.
    """

    layers: list[int]
    source: Pieces
    target: Pieces
    weights: Float[Tensor, "L H T S"]
    media: MediaInput | None = None

    def by_word(self) -> Float[Tensor, "L H T2 S2"]:
        """Cross-attention weights between words: summed over source pieces, averaged over target pieces of a word."""
        columns, rows = (_membership(pieces).to(self.weights) for pieces in (self.source, self.target))
        return (rows / rows.sum(0)).T @ self.weights @ columns


def _membership(pieces: Pieces) -> Int[Tensor, "P W"]:
    return one_hot(torch.tensor(pieces.word_of_piece), len(pieces.words))


def cross_attention(subject: Writer, source: Given, target: str | None = None) -> AlignedAttention:
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
    found = reading(subject, source, target)
    with torch.no_grad(), evaluating(found.model), recording(found.model, ["dec.*.cross.attn"]) as kept:
        found.run()
    weights = torch.cat(list(kept.values())).float().cpu()
    layers = [int(name.split(".")[1]) + 1 for name in kept]
    return AlignedAttention(layers, found.lines["src"].read, found.lines["tgt"].said, weights, found.media)


def view(
    weights: Float[Tensor, "L H T S"], layers: list[int], layer: int | None = None, head: int | None = None
) -> tuple[Float[Tensor, "T S"], str]:
    """Choose the cross-attention matrix of one layer and head, or the mean of a layer, and a title for it.

    Args:
        weights: Attention of all layers and heads.
        layers: Numbers of these layers, from 1.
        layer: Decoder layer, from 1; None: the layer whose heads have the lowest mean entropy.
        head: Attention head, from 1; None: the mean of all heads of the layer.

    Raises:
        InputError: The model has no such head, or the layer no cross-attention.
    """
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

    Args:
        weights: Attention by word, without the rows and columns of <eos>.
        gold: Links (source word, target word), counted from 0.
    """
    links = torch.zeros(weights.shape[2:], dtype=torch.bool)
    for source, target in gold:
        links[target, source] = True
    targets = torch.arange(len(links))
    found = links[targets, weights.argmax(-1)].sum(-1)
    return 1 - 2 * found / (len(links) + links.sum())
