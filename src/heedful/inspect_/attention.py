"""What a translator looks at: the weights of its cross-attention, by piece and by word.

L decoder layers, H heads, T target pieces or words, S source pieces or words.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from heedful.decode.translator import Translator, evaluating
from heedful.errors import InputError
from heedful.inspect_.pieces import Pieces
from heedful.models import EncoderDecoder
from heedful.nn.attention import Attention, scaled_dot_product
from heedful.nn.stack import DecoderBlock
from heedful.tasks.sequence_to_sequence import collate


@dataclass(frozen=True)
class AlignedAttention:
    """Row t of `weights` tells where the decoder looked when it wrote target piece t; each row sums to 1."""

    source: Pieces
    target: Pieces
    weights: Float[Tensor, "L H T S"]

    def by_word(self) -> Float[Tensor, "L H T2 S2"]:
        """Weights between words: summed over the pieces of a source word, averaged over those of a target word."""
        columns, rows = (_membership(pieces).to(self.weights) for pieces in (self.source, self.target))
        return (rows / rows.sum(0)).T @ self.weights @ columns


def _membership(pieces: Pieces) -> Int[Tensor, "P W"]:
    return one_hot(torch.tensor(pieces.word_of_piece), len(pieces.words))


def cross_attention(translator: Translator, source: str, target: str | None = None) -> AlignedAttention:
    """Record where each decoder layer and head looks while it writes a translation.

    The tokens of the translation are fed to the decoder in one pass (teacher forcing), which gives the weights that
    writing them one by one gives.

    Args:
        translator: The model with its tokenizers.
        source: One sentence.
        target: Its translation; None: what the translator makes of it.

    Raises:
        InputError: The source is empty, or a text too long for the model.
    """
    if not source.strip():
        raise InputError("there is no text; give one sentence")
    read = translator.tokenizers.source.encode(source)
    check_length(read, translator.longest_source)
    if target is None:
        [translation] = translator.translate_lines([source])
        written = translation.alternatives[0].hypothesis.tokens
    else:
        written = translator.tokenizers.target.encode(target)
    check_length(written, translator.longest_source + translator.config.max_extra)
    pieces = Pieces.of(read, translator.tokenizers.source), Pieces.of(written, translator.tokenizers.target)
    return AlignedAttention(*pieces, teacher_forced(translator, *pieces))


def check_length(ids: list[int], limit: int) -> None:
    """Raise an InputError if with <eos> there are more than `limit` ids."""
    if len(ids) >= limit:
        raise InputError(f"a text of {len(ids)} tokens, and the model takes {limit - 1}; give one sentence")


def teacher_forced(translator: Translator, source: Pieces, target: Pieces) -> Float[Tensor, "L H T S"]:
    """The cross-attention weights of one run of the model over a whole sentence pair."""
    batch = collate(np.array([source.ids]), np.array([target.ids]), translator.device)
    model = translator.model
    with torch.no_grad(), evaluating(model), recording(cross_attention_layers(model)) as records:
        model(batch.source, batch.source_keep, batch.target_in, batch.target_keep)
    return torch.cat([weights for [weights] in records]).float().cpu()


def cross_attention_layers(model: EncoderDecoder) -> list[Attention]:
    """The cross-attention of each decoder layer, the lowest first."""
    return [block.cross_attention for block in model.decoder.blocks if isinstance(block, DecoderBlock)]


@contextmanager
def recording(layers: Sequence[Attention]) -> Iterator[list[list[Tensor]]]:
    """Within the block, keep the attention weights of some layers, (B H T S) each time one of them runs.

    The layers compute the plain formula meanwhile, as the fused kernels do not give their weights away; afterwards
    each has its kernel back, whatever happened.

    Yields:
        For each layer a list that grows by one matrix a call.
    """
    kernels = [layer.kernel for layer in layers]
    records: list[list[Tensor]] = [[] for _ in layers]
    for layer, record in zip(layers, records, strict=True):
        layer.kernel = _keeping(record)
    try:
        yield records
    finally:
        for layer, kernel in zip(layers, kernels, strict=True):
            layer.kernel = kernel


def _keeping(record: list[Tensor]) -> Callable[..., Tensor]:
    def kernel(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, rate: float) -> Tensor:
        output, weights = scaled_dot_product(q, k, v, bias, rate)
        record.append(weights.detach())
        return output

    return kernel


def view(
    weights: Float[Tensor, "L H T S"], layer: int | None = None, head: int | None = None
) -> tuple[Float[Tensor, "T S"], str]:
    """Choose one matrix to look at, and name it.

    Args:
        weights: Attention of all layers and heads.
        layer: From 1; None: the one whose heads spread their attention least.
        head: From 1; None: the mean of all heads of the layer.

    Raises:
        InputError: The model has no such layer or head.
    """
    for kind, number, count in (("layer", layer, weights.size(0)), ("head", head, weights.size(1))):
        if number is not None and not 1 <= number <= count:
            raise InputError(f"{kind} {number}: the decoder has {count}, counted from 1")
    layer = layer or sharpest_layer(weights)
    name = f"Cross-attention, layer {layer}"
    if head is None:
        return weights[layer - 1].mean(0), f"{name}, mean of {weights.size(1)} heads"
    return weights[layer - 1, head - 1], f"{name}, head {head}"


def sharpest_layer(weights: Float[Tensor, "L H T S"]) -> int:
    """The layer, from 1, whose heads spread their attention least: the lowest mean entropy over heads and targets."""
    return int(torch.special.entr(weights).sum(-1).mean((1, 2)).argmin()) + 1


def alignment_error(weights: Float[Tensor, "L H T S"], gold: Collection[tuple[int, int]]) -> Float[Tensor, "L H"]:
    """How far each head is from a gold alignment, if each target word is aligned to where it looks most.

    This is the alignment error rate (Och & Ney 2003) with sure links only: 1 - 2 |A & G| / (|A| + |G|) for the links
    A of a head and G of the gold alignment; 0 is perfect.

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
