"""Words of running text: context windows, phrases, and Huffman codes of the vocabulary (Mikolov et al. 2013)."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from heedful.random_numbers import WORDS, draw_at
from heedful.text.tokenizer import EOS


class HuffmanCodes(NamedTuple):
    """The path of each word from the root of a binary tree: its inner nodes, and the branch taken at each of them."""

    nodes: np.ndarray  # (V, P) int64: inner nodes from the root on, numbered from 0; the rest is 0
    branches: np.ndarray  # (V, P) bool: the code of the word
    lengths: np.ndarray  # (V,) int64


def huffman_codes(counts: np.ndarray) -> HuffmanCodes:
    """Build the Huffman tree of words: frequent words get short codes, those that do not occur have no path."""
    words = np.flatnonzero(counts).tolist()
    # The number of the word or node decides ties, so that the same counts give the same tree.
    heap = [(int(counts[word]), word) for word in words]
    heapify(heap)
    parent: dict[int, tuple[int, bool]] = {}  # of words by their number, of inner nodes by theirs after the words
    inner = 0
    while len(heap) > 1:
        first, low = heappop(heap)
        second, high = heap[0]
        parent[low], parent[high] = (inner, False), (inner, True)
        # The two rarest become one node, which is as frequent as both together.
        heapreplace(heap, (first + second, len(counts) + inner))
        inner += 1
    paths = {}
    for word in words:
        path, node = [], word
        while node in parent:
            path.append(parent[node])
            node = len(counts) + parent[node][0]
        paths[word] = path[::-1]  # from the root on
    longest = max(map(len, paths.values()), default=0)
    nodes = np.zeros((len(counts), longest), np.int64)
    branches = np.zeros((len(counts), longest), bool)
    lengths = np.zeros(len(counts), np.int64)
    for word, path in paths.items():
        lengths[word] = len(path)
        nodes[word, : len(path)] = [node for node, _ in path]
        branches[word, : len(path)] = [branch for _, branch in path]
    return HuffmanCodes(nodes, branches, lengths)


JOINER = "_"
MAX_PAIRS = 1 << 22  # pairs that are counted at a time; the rarest are forgotten when there are more


def join(words: Sequence[str], phrases: Container[str]) -> list[str]:
    """Join the neighbouring words of a document that form a phrase, from left to right.

    A new phrase is not joined to the next word: longer phrases come from further passes.
    """
    joined: list[str] = []
    is_open = False  # True if the last of `joined` is a word that may begin a phrase
    for word in words:
        if is_open and (phrase := joined[-1] + JOINER + word) in phrases:
            joined[-1] = phrase
        else:
            joined.append(word)
            phrase = ""
        is_open = not phrase
    return joined


def join_all(documents: Iterable[Sequence[str]], passes: Iterable[Container[str]]) -> Iterator[Sequence[str]]:
    """Yield documents with their phrases joined, in several passes, each with its phrases."""
    passes = list(passes)
    return (reduce(join, passes, words) for words in documents)


def find_phrases(documents: Iterable[Sequence[str]], threshold: float, discount: int) -> frozenset[str]:
    """Find the pairs of neighbouring words whose score is above a threshold; return them joined, as in "new_york".

    score(a, b) = (count(ab) - discount) / (count(a) count(b)) x N, formula 6 of the paper times the number N of words,
    as in the authors' program, so that a threshold means the same in texts of any size. The discount keeps rare words
    from forming phrases.
    """
    words: Counter[str] = Counter()
    pair_counts: Counter[tuple[str, str]] = Counter()
    least = 1
    for document in documents:
        words.update(document)
        pair_counts.update(pairwise(document))
        while len(pair_counts) > MAX_PAIRS:  # as in the authors' program, which forgets the rarest
            least += 1
            pair_counts = Counter({pair: count for pair, count in pair_counts.items() if count >= least})
    total = words.total()
    return frozenset(
        a + JOINER + b
        for (a, b), count in pair_counts.items()
        if (count - discount) * total > threshold * words[a] * words[b]
    )


BLOCK = 1 << 24  # tokens that are counted at a time


@dataclass(frozen=True)
class WordWindows:
    """Words in the order of the text with their windows: how many words on either side are the context of each."""

    words: np.ndarray  # (N,) int64
    before: np.ndarray  # (N,) int64: context words before the word
    after: np.ndarray  # (N,) int64

    @property
    def sizes(self) -> np.ndarray:
        return self.before + self.after


def count_words(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Count the occurrences of each token of a stream, int64, (V,); special tokens are not words and count 0."""
    counts = np.zeros(vocab_size, np.int64)
    for begin in range(0, len(ids), BLOCK):
        counts += np.bincount(ids[begin : begin + BLOCK], minlength=vocab_size)
    counts[: EOS + 1] = 0
    return counts


def keep_probabilities(counts: np.ndarray, subsample: float) -> np.ndarray:
    """Compute with which probability each word is kept when frequent words are thinned out, float64, shape (V,).

    sqrt(t / f) + t / f for a word of frequency f, at most 1, as the program of Mikolov et al. (2013b) computes it;
    section 2.3 of the paper has the first term alone. With t = `subsample` = 0 all are kept, but never a token that
    does not occur.
    """
    share = subsample * counts.sum() / np.maximum(counts, 1)
    probabilities = np.minimum(np.sqrt(share) + share, 1.0) if subsample else np.ones(len(counts))
    return np.where(counts > 0, probabilities, 0.0)


def draw_windows(
    ids: np.ndarray, places: np.ndarray, piece: int, keep: np.ndarray, window: int, key: tuple[int, ...]
) -> WordWindows:
    """Draw which words are kept, and the window of each: from 1 to `window` words on either side.

    Both depend on the key and the place of a word alone, so that batches of any size give the same windows. Windows
    end with the document and with the piece of text; words that are not kept leave no gap.

    Args:
        ids: Tokens of pieces of text one after another, in which <eos> ends a document, shape (T,).
        places: The place of each token in its stream, shape (T,).
        piece: The number of tokens of a piece; the last piece may have fewer.
        keep: The probability with which each word is kept, as by `keep_probabilities`.
        window: The largest size of a window.
        key: Seed and epoch.
    """
    # The upper 32 bits of a word's number decide whether it is kept, the lower 32 the size of its window.
    numbers = draw_at(places, *key, WORDS)
    is_kept = (numbers >> np.uint64(32)) * 2.0**-32 < keep[ids]
    sizes = 1 + (numbers[is_kept] & np.uint64(0xFFFFFFFF)).astype(np.int64) % window
    ends = ids == EOS
    ends[piece - 1 :: piece] = True
    document = (np.cumsum(ends) - ends)[is_kept]  # of each word that is kept
    order = np.arange(len(document))
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    lengths = np.diff(starts, append=len(document))
    first = np.repeat(starts, lengths)
    last = first + np.repeat(lengths, lengths) - 1
    return WordWindows(ids[is_kept].astype(np.int64), np.minimum(sizes, order - first), np.minimum(sizes, last - order))


def pairs(windows: WordWindows) -> tuple[np.ndarray, np.ndarray]:
    """List all pairs of a centre word and a word in its window, as places in the batch, int64, shape (pairs,) both.

    Pairs are ordered by the place of the centre word, then by that of the context word.
    """
    centres = np.repeat(np.arange(len(windows.words)), windows.sizes)
    firsts = np.cumsum(windows.sizes) - windows.sizes
    # From -before to after - 1; those from 0 on are one further, as a word is not in its own context.
    step = np.arange(len(centres)) - np.repeat(firsts, windows.sizes) - np.repeat(windows.before, windows.sizes)
    return centres, centres + step + (step >= 0)


class NoiseDistribution:
    """The distribution of negative samples, count^power, as an alias table (Walker 1977): two look-ups a draw."""

    def __init__(self, counts: np.ndarray, power: float) -> None:
        weights = np.where(counts > 0, counts.astype(np.float64) ** power, 0.0)
        self.threshold, self.alias = alias_table(weights / weights.sum())

    def draw(self, numbers: np.ndarray) -> np.ndarray:
        """Turn random 64-bit numbers, of any shape, into words drawn from the distribution, int64."""
        # The upper 32 bits choose a column, the lower 32 one of its two words.
        column = ((numbers >> np.uint64(32)) * np.uint64(len(self.alias)) >> np.uint64(32)).astype(np.int64)
        chance = (numbers & np.uint64(0xFFFFFFFF)) * 2.0**-32
        return np.where(chance < self.threshold[column], column, self.alias[column])


def alias_table(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Build the alias table of a distribution: each column holds its own item up to a threshold, then one other item.

    Returns the thresholds, float64, and the other items, int64, (V,) both.
    """
    # A column has room for the probability 1 / V: items with less leave room, which those with more fill.
    threshold = probabilities * len(probabilities)
    alias = np.arange(len(probabilities))
    small = np.flatnonzero(threshold < 1).tolist()
    large = np.flatnonzero(threshold >= 1).tolist()
    while small and large:
        item, donor = small.pop(), large[-1]
        alias[item] = donor
        threshold[donor] -= 1 - threshold[item]
        if threshold[donor] < 1:
            small.append(large.pop())
    threshold[small + large] = 1.0  # but for rounding they fill their columns
    return threshold, alias


@dataclass(frozen=True)
class WordBlocks:
    """Blocks of consecutive words with the words around them, so that scores of many pairs are one matrix product.

    B blocks, L words of a block, C = window + L + window words around it. What fills up the last block has no context.
    """

    words: np.ndarray  # (B, L) int64
    around: np.ndarray  # (B, C) int64: the words of the block with those before and after it
    in_window: np.ndarray  # (B, C, L) bool: True where a word is in the window of a word of the block
    sizes: np.ndarray  # (B, L) int64: the number of context words


def blocks(windows: WordWindows, window: int, length: int) -> WordBlocks:
    """Cut the words of a batch into blocks of `length` words, at least one; no pair of words is lost."""
    # Pairs one by one would read each vector many times. A block of words and its surroundings, as two matrices, give
    # all scores in one product, of which `in_window` selects those of pairs.
    count = len(windows.words)
    rest = -count % length if count else length
    row = np.pad(windows.words, (window, rest + window))
    before, after = (np.pad(side, (0, rest)).reshape(-1, 1, length) for side in (windows.before, windows.after))
    size = length + 2 * window
    steps = np.arange(size)[:, None] - window - np.arange(length)
    # Small numbers, so that a comparison of all places takes no time; one that is below 0 becomes a large one.
    first, span = steps.astype(np.uint16) + before.astype(np.uint16), (before + after).astype(np.uint16)
    return WordBlocks(
        words=row[window : window + count + rest].reshape(-1, length),
        around=np.lib.stride_tricks.sliding_window_view(row, size)[::length],
        in_window=(first <= span) & (steps != 0),
        sizes=np.pad(windows.sizes, (0, rest)).reshape(-1, length),
    )
