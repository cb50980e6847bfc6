"""Packing of padded batches: only real tokens, one time step after another, as recurrent layers read them.

B batch, T tokens, D model, Q sequences, N real tokens.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


class Packing:
    """Order of the real tokens of a padded batch in which sequences are read side by side, one step after another.

    A sequence is a row without its padding, or one of several documents in a row. The longest sequences come first, so
    that the sequences which still go on at a step are the first ones (torch's `PackedSequence` has the same order).

    Args:
        padding_mask: True for real tokens.
        positions: the position of each token in its document, from 0.

    Attributes:
        rows: the row of each sequence.
        batch_sizes: the number of sequences that have a token at each step; on the CPU, as torch wants it.
        sequence: the sequence of each packed token.
    """

    def __init__(self, padding_mask: Bool[Tensor, "B T"], positions: Int[Tensor, "B T"]) -> None:
        self.shape = padding_mask.shape
        begins = padding_mask & (positions == 0)
        begins[:, 0] |= padding_mask[:, 0]
        begins[:, 1:] |= padding_mask[:, 1:] & ~padding_mask[:, :-1]
        place = padding_mask.flatten().nonzero()[:, 0]
        first = begins.flatten()[place].nonzero()[:, 0]
        lengths = torch.diff(first, append=first.new_tensor([len(place)]))
        ranked = lengths.argsort(descending=True, stable=True)
        rank = torch.empty_like(ranked).scatter_(0, ranked, torch.arange(len(ranked), device=ranked.device))
        step = torch.arange(len(place), device=place.device) - first.repeat_interleave(lengths)
        order = (step * len(ranked) + rank.repeat_interleave(lengths)).argsort()
        self.rows: Int[Tensor, " Q"] = place[first[ranked]] // padding_mask.size(1)
        self.batch_sizes: Int[Tensor, " L"] = torch.bincount(step).cpu()
        self.sequence: Int[Tensor, " N"] = rank.repeat_interleave(lengths)[order]
        self._place: Int[Tensor, " N"] = place[order]

    def pack(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "N D"]:
        """Take the real tokens of a padded batch, in the packed order."""
        return x.flatten(0, 1)[self._place]

    def unpack(self, packed: Float[Tensor, "N D"]) -> Float[Tensor, "B T D"]:
        """Put packed tokens back into a padded batch, with zeros where there is padding."""
        padded = packed.new_zeros(self.shape.numel(), packed.size(-1))
        return padded.index_copy(0, self._place, packed).unflatten(0, self.shape)
