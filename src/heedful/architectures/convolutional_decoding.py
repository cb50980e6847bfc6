"""Decoding state of encoder-decoders whose decoder is a stack of causal convolutions, such as ConvS2S and ByteNet.

R rows of a search, T target tokens, V vocabulary.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures.model import SourceToTarget
from heedful.nn.masks import AttentionMask
from heedful.nn.spacing import ConvolutionCache
from heedful.text.tokenizer import BOS

S = TypeVar("S")


class ConvolutionalDecodingState(Generic[S]):
    """Decoding state of a convolutional encoder-decoder: the cache of its decoder and the source of each row.

    Args:
        model: The model; its `decoder` reads embedded tokens, their mask, a source and a cache.
        source: The encoded sources.
        cache: The cache of the decoder, before the first token.
        rows: The number of sources, R.
        select: Selects rows of a source.
    """

    def __init__(
        self, model: SourceToTarget, source: S, cache: ConvolutionCache, rows: int, select: Callable[[S, Tensor], S]
    ) -> None:
        self.model: Any = model
        self.source, self.cache, self.select_source = source, cache, select
        device = model.output.weight.device
        self.begin = torch.full((rows,), BOS, device=device)
        self.padding_mask = torch.ones(rows, 0, dtype=torch.bool, device=device)  # R T, the target so far
        self.sentences = torch.arange(rows, device=device)  # the sentence of each row

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        self.padding_mask = F.pad(self.padding_mask, (0, 1), value=True)
        mask = AttentionMask(self.padding_mask, 1, causal=True)
        x = self.model.target_embedding(tokens[:, None])
        return self.model.output(self.model.decoder(x, mask, self.source, self.cache)[:, 0])

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.padding_mask = self.padding_mask[rows]
        self.cache.select(rows)
        # The source is copied only if a row changes its sentence: copying it at every step would be slow.
        sentences = self.sentences[rows]
        if not torch.equal(sentences, self.sentences):
            self.source, self.sentences = self.select_source(self.source, rows), sentences
