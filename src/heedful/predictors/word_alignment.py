"""Word alignment of a source and its translation, from the cross-attention of a translator that reads both.

S source tokens, T target tokens, I source words, J target words.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray as Array

from heedful.architectures.ensemble import TranslatorEnsemble
from heedful.architectures.model import SourceToTarget, evaluating
from heedful.documents.tags import Link
from heedful.errors import InputError
from heedful.predictors.cross_attention import head_counts, head_weights, upper_heads
from heedful.predictors.translator import CHARACTERS_PER_TOKEN
from heedful.search.source_to_target import padded_rows
from heedful.text.pipeline import BOS, EOS
from heedful.text.sequences import batches
from heedful.text.tokenizer import CharacterSpan, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.words import word_spans


@dataclass(frozen=True)
class Alignment:
    """Word alignment of a source and its translation. `str` is its line in Pharaoh's format, such as "0-0 1-2".

    Attributes:
        source_words: The span of characters of each word of the source.
        target_words: The span of characters of each word of the translation.
        pairs: The links, sorted: each the index of a source word and the index of a target word, from 0.
    """

    source_words: tuple[CharacterSpan, ...]
    target_words: tuple[CharacterSpan, ...]
    pairs: tuple[tuple[int, int], ...]

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The links, sorted, each as the spans of characters of its two words."""
        return tuple(Link(self.source_words[source], self.target_words[target]) for source, target in self.pairs)

    def __str__(self) -> str:
        return " ".join(f"{source}-{target}" for source, target in self.pairs)


class Side(NamedTuple):
    """Source or translation of a pair: the spans of its words, and its token ids with the span of each token."""

    words: list[CharacterSpan]
    ids: list[int]
    places: list[CharacterSpan]

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer, limit: int) -> "Side":
        """Encode a text as at most `limit` tokens."""
        ids, places = tokenizer.encode_with_places(text[: limit * CHARACTERS_PER_TOKEN])
        return cls(word_spans(text), ids[:limit], places[:limit])

    def tokens_of_words(self) -> Bool[Array, "words tokens"]:
        """Return, for each word up to the last token, True where a token has characters of the word."""
        count = bisect_left(self.words, self.places[-1][1], key=itemgetter(0))
        words, places = np.array(self.words[:count]).reshape(-1, 2), np.array(self.places)
        return (places[:, 0] < words[:, 1:]) & (words[:, :1] < places[:, 1])


class Aligner:
    """Aligner of the words of sources and their translations, by the cross-attention in the upper half of a decoder.

    Args:
        model: An encoder-decoder or an ensemble, whose first model aligns.
        tokenizers: The tokenizers of source and target.
        limits: The maximum numbers of source tokens, without <eos>, and of target tokens that the model reads.
        batch_tokens: The maximum size of a batch, in tokens of its longer side.
    """

    def __init__(
        self, model: SourceToTarget, tokenizers: TokenizerPair, limits: tuple[int, int], batch_tokens: int
    ) -> None:
        self.model = model.models[0] if isinstance(model, TranslatorEnsemble) else model
        self.tokenizers = tokenizers
        self.limits = limits
        self.batch_tokens = batch_tokens
        self.heads = upper_heads(head_counts(self.model))
        if not self.heads:
            raise InputError("the model has no cross-attention, which alignments are derived from; use another model")

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[Alignment]:
        """Align the words of pairs of a source and a translation."""
        tokenizers, (longest_source, longest_target) = self.tokenizers, self.limits
        sides = [
            (Side.of(source, tokenizers.source, longest_source), Side.of(target, tokenizers.target, longest_target))
            for source, target in pairs
        ]
        links: list[set[tuple[int, int]]] = [set() for _ in sides]
        for index, weights in self._attention(sides):
            links[index] = links_of(by_word(weights, *sides[index]))
        return [
            Alignment(tuple(source.words), tuple(target.words), tuple(sorted(of_pair)))
            for (source, target), of_pair in zip(sides, links, strict=True)
        ]

    def _attention(self, pairs: Sequence[tuple[Side, Side]]) -> Iterator[tuple[int, Float[Array, "T S"]]]:
        """Yield the index of each pair that has tokens on both sides, and the mean attention of the heads.

        Row t is the attention of the position that predicts target token t.
        """
        device = next(self.model.parameters()).device
        # The limit of a batch applies to both sides, so pairs are grouped by their longer side.
        rows = [max(source.ids, target.ids, key=len) if source.ids and target.ids else [] for source, target in pairs]
        # A recurrent decoder reads one pair at a time.
        groups = batches(rows, 1 if self.model.recurrent_stacks() else self.batch_tokens)
        with evaluating(self.model):
            for batch in groups:
                source, source_mask = padded_rows([[*pairs[i][0].ids, EOS] for i in batch], device)
                target, target_mask = padded_rows([[BOS, *pairs[i][1].ids[:-1]] for i in batch], device)
                weights = head_weights(self.model, source, source_mask, target, target_mask, self.heads)
                for index, of_pair in zip(batch, weights.mean(1).double().numpy(), strict=True):
                    yield index, of_pair[: len(pairs[index][1].ids), : len(pairs[index][0].ids)]


def by_word(weights: Float[Array, "T S"], source: Side, target: Side) -> Float[Array, "J I"]:
    """Return the weights by word: summed over the tokens of a source word, averaged over those of a target word."""
    columns, rows = source.tokens_of_words().T, target.tokens_of_words()
    return rows @ weights @ columns / np.maximum(rows.sum(1, keepdims=True), 1)


def links_of(weights: Float[Array, "J I"]) -> set[tuple[int, int]]:
    """Return the links (source word, target word) of attention weights by word.

    A link is between two words that attend most to each other, or as in `symmetrised`. Words without weights, whose
    tokens the model did not read, have no links.
    """
    # Some source words, such as punctuation marks, receive attention from all target words. The weights are divided by
    # the total of their source word and then of their target word, the first step of Sinkhorn's iteration (1967).
    tiny = np.finfo(np.float64).tiny
    weights = weights / np.maximum(weights.sum(0), tiny)
    weights = weights / np.maximum(weights.sum(1, keepdims=True), tiny)
    targets, sources = (np.flatnonzero(weights.sum(axis)) for axis in (1, 0))
    return symmetrised(
        {(int(weights[target].argmax()), int(target)) for target in targets},
        {(int(source), int(weights[:, source].argmax())) for source in sources},
    )


def symmetrised(forward: set[tuple[int, int]], backward: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Combine the links from each target word and those from each source word: grow-diag-final-and (Koehn et al. 2005).

    Links in both sets are kept. Others are added if they are adjacent to a link, as long as one of their words has no
    link yet, and finally if neither of their words has one.
    """
    links = forward & backward
    others = sorted(forward ^ backward)
    sources, targets = {source for source, _ in links}, {target for _, target in links}

    def add(source: int, target: int) -> None:
        links.add((source, target))
        sources.add(source)
        targets.add(target)

    count = -1
    while count != len(links):
        count = len(links)
        for source, target in others:
            adjacent = product((source - 1, source, source + 1), (target - 1, target, target + 1))
            if not (source in sources and target in targets) and not links.isdisjoint(adjacent):
                add(source, target)
    for source, target in others:
        if source not in sources and target not in targets:
            add(source, target)
    return links
