"""Data loader: batches of training examples of similar length, planned for each epoch.

The plan is a pure function of lengths, weights, batch size, seed and epoch. It has no state, so a run can resume
anywhere by recomputing the epoch's plan.
"""

import math
import random
from collections.abc import Sequence

import numpy as np

from heedful.data.stores import PairStore
from heedful.random_numbers import BATCHES, BLUR, ORDER, SHARE, draw, shuffled
from heedful.text.sequences import pad
from heedful.text.tokenizer import EOS, PAD, UNK, Tokenizer

BLOCK = 1 << 20  # pairs that are sorted by length together: enough for full batches, few enough for fast sorting
JITTER = 3  # pairs of equal length are sorted with 0, 1 or 2 tokens of noise, so that epochs do not repeat batches


class BatchPlan:
    """Plan of the batches of each epoch: shuffled examples, bucketed by length.

    The id of a pair is its row in its corpus plus the sizes of all previous corpora.

    Args:
        lengths: For each corpus of n pairs, the source and target lengths in tokens, shape (n, 2).
        weights: How often each epoch contains each corpus. With 2.25, every pair occurs twice, and a quarter of the
            pairs once more: a different quarter in each epoch, so that four consecutive epochs cover all pairs.
        tokens: Maximum batch size: number of pairs x length of the longest side in tokens. A pair that exceeds it is a
            batch by itself.
        seed: A different seed gives a different order.
    """

    def __init__(self, lengths: Sequence[np.ndarray], weights: Sequence[float], tokens: int, seed: int) -> None:
        self.sizes = [len(corpus) for corpus in lengths]
        self.lengths = np.concatenate(lengths) if lengths else np.empty((0, 2), np.int64)
        self.weights = list(weights)
        self.tokens = tokens
        self.seed = seed

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch in order, each as the ids of its pairs, int64, shape (B,)."""
        # Pairs are shuffled before the stable sort by length, so that pairs of equal length share batches with
        # different pairs in each epoch.
        order = shuffled(self._ids(epoch), self.seed, ORDER, epoch)
        # Blocks are sorted by length separately, because sorting all pairs of a large corpus takes long.
        batches: list[np.ndarray] = []
        for number, block in enumerate(np.array_split(order, math.ceil(len(order) / BLOCK))):
            blur = draw(len(block), self.seed, BLUR, epoch, number) % JITTER
            cuts = _cut(block, self.lengths[block], blur.astype(np.int64), self.tokens)
            # The batches of a block are sorted by length. Without this shuffle, training would go from short to long
            # sentences.
            batches += [cuts[i] for i in shuffled(np.arange(len(cuts)), self.seed, BATCHES, epoch, number)]
        return batches

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a batch: its number of pairs x the length of its longest side in tokens."""
        return len(ids) * int(self.lengths[ids].max())

    def _ids(self, epoch: int) -> np.ndarray:
        """Return the ids of the pairs in an epoch, repeated according to the weights of their corpora."""
        parts, first = [], 0
        for corpus, (size, weight) in enumerate(zip(self.sizes, self.weights, strict=True)):
            ids = np.arange(first, first + size)
            parts.append(np.tile(ids, int(weight)))
            if fraction := weight % 1:
                # The next part of a circle of all pairs, so that 1 / fraction consecutive epochs cover each pair once.
                share = max(1, round(fraction * size))
                circle = shuffled(ids, self.seed, SHARE, corpus)
                parts.append(circle[np.arange(epoch * share, (epoch + 1) * share) % size])
            first += size
        return np.concatenate(parts)


def assemble(stores: Sequence[PairStore], ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the source ids (B, S) and target ids (B, T) of a batch, int64, padded at the end with <pad>.

    `stores` are the corpora of the `BatchPlan`, in order, and `ids` the pairs of one of its batches, (B,).
    """
    # Ids count across all corpora: find the corpus of each pair, and its row there.
    first = np.cumsum([0, *map(len, stores)])
    corpus_of = np.searchsorted(first, ids, side="right") - 1
    rows = ids - first[corpus_of]

    # A target row follows its source row, so one offset locates both.
    lengths, begins = np.empty((len(ids), 2), np.int64), np.empty(len(ids), np.int64)
    parts = [(store, corpus_of == corpus) for corpus, store in enumerate(stores)]
    for store, mask in parts:
        lengths[mask], begins[mask] = store.lengths[rows[mask]], store.offsets[rows[mask]]
    source = _padded(parts, begins, lengths[:, 0])
    target = _padded(parts, begins + lengths[:, 0], lengths[:, 1])
    return source, target


def encode_with_bpe_dropout(
    rows: np.ndarray, tokenizer: Tokenizer, rate: float, rng: random.Random, max_length: float = math.inf
) -> np.ndarray:
    """Re-encode the texts of padded rows of token ids, shape (B, S), with BPE dropout.

    A row is left unchanged if it contains <unk>, because its text cannot be recovered, or if it would become longer
    than `max_length`.

    Args:
        rows: Ids, int64, padded at the end with <pad>. Each row ends in <eos>.
        tokenizer: A tokenizer of kind "bpe".
        rate: The probability of skipping a merge.
        rng: Source of randomness; the same state gives the same subwords.
        max_length: Maximum number of tokens in a row, <eos> included.

    Returns:
        The new ids, int64, padded to the length of the longest new row.
    """

    def encode_again(row: np.ndarray) -> list[int]:
        ids = row[row != PAD]
        if UNK in ids:
            return ids.tolist()
        # Dropout skips merges while a word is segmented (Provilkov et al. 2020), so the ids, which are already merged,
        # are decoded to text first.
        subwords = [*tokenizer.encode_with_dropout(tokenizer.decode(ids[:-1]), rate, rng), EOS]
        return subwords if len(subwords) <= max_length else ids.tolist()

    return pad([encode_again(row) for row in rows])[0]


def _padded(parts: Sequence[tuple[PairStore, np.ndarray]], begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return rows of ids from several stores, padded at the end with <pad>, (B, L).

    `begins` and `lengths`, (B,), locate each row in its store; `parts` pairs each store with a mask of its rows, (B,).
    """
    column = np.arange(lengths.max())
    padded = np.full((len(lengths), len(column)), PAD, np.int64)
    for store, mask in parts:
        # (B, L): all rows of a store are gathered at once, because a Python loop over rows is slow.
        inside = mask[:, None] & (column < lengths[:, None])
        padded[inside] = store.ids[(begins[:, None] + column)[inside]]
    return padded


def _cut(ids: np.ndarray, lengths: np.ndarray, blur: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Sort pairs by their longer side and split them into batches of at most `tokens` tokens, padding included.

    Pairs whose longer sides are equal are sorted by source length minus target length, which halves the padding of the
    shorter sides. `blur` is added to this difference.
    """
    source, target = lengths.T
    longest = np.maximum(source, target)
    by_length = np.lexsort((source - target + blur, longest))
    longest = longest[by_length]
    cuts, begin = [], 0
    while begin < len(longest):
        # The sizes of batches of 1, 2, 3 ... pairs from `begin` on. The last pair is the longest, and sets the padding.
        candidates = longest[begin : begin + max(1, tokens // longest[begin])]
        sizes = candidates * np.arange(1, len(candidates) + 1)
        begin += max(1, int(np.searchsorted(sizes, tokens, side="right")))
        cuts.append(begin)
    return np.split(ids[by_length], cuts[:-1])
