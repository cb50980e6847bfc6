"""Training of a unigram language model's vocabulary (Kudo 2018, section 3.2).

The `tokenizers` library has a trainer too, but it adds up in an order that changes from process to process, and its
scores change with it; here the same words give the same vocabulary, bit for bit.

W texts, E edges (pieces where they occur in a text), P pieces. A node is a place before, between or behind the
characters of a text; the nodes of all texts are numbered in a row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

LONGEST_PIECE = 16  # characters
MOST_WORDS = 200_000  # the rarer words of a large text teach little and take memory
SEEDS = 10  # pieces to begin with, for each piece that is wanted
SHRINKAGE = 0.75  # the share of the pieces that is kept at a cut
ROUNDS = 2  # rounds of expectation and maximisation before each cut
FEWEST = 0.5  # occurrences; an unused character keeps this probability
DIGITS = 6  # decimal digits of a score


def train_unigram(words: Mapping[str, int], size: int) -> list[tuple[str, float]]:
    """Train a unigram vocabulary of at most `size` pieces: all characters, and strings that make words most probable.

    There are too many pieces at first. In turns their probabilities are estimated by expectation and maximisation, and
    pieces are dropped whose absence costs least: a piece is worth its expected count times what its log probability is
    above that of the best spelling without it.

    Args:
        words: Words and how often they occur.
        size: The number of pieces, at least that of the characters.

    Returns:
        Pieces and their log probabilities, the most probable first.
    """
    texts = _most_frequent(words)
    seeds = _seeds(words, texts, SEEDS * size)
    pieces = list(seeds)
    corpus = Lattice.of(list(texts), pieces)
    inside = Lattice.of(pieces, pieces).without_whole_texts()
    counts = np.array(list(texts.values()), dtype=np.float64)
    character = np.array([len(piece) == 1 for piece in pieces])
    alive = np.ones(len(pieces), dtype=np.bool_)
    scores = _log_share(np.array(list(seeds.values()), dtype=np.float64), alive)
    expected, scores = _estimate(corpus, counts, scores, alive)
    while alive.sum() > size:
        worth = np.where(character, np.inf, expected * (scores - inside.best_scores(scores)))
        survivors = np.argsort(np.where(alive, -worth, np.inf), kind="stable")
        alive[survivors[max(size, int(SHRINKAGE * alive.sum())) :]] = False
        corpus, inside = corpus.restricted(alive), inside.restricted(alive)
        expected, scores = _estimate(corpus, counts, scores, alive)
    ranked = sorted((-round(float(scores[i]), DIGITS), pieces[i]) for i in np.flatnonzero(alive))
    return [(piece, -cost) for cost, piece in ranked]


@dataclass(frozen=True)
class Turn:
    """Step of a sweep over a lattice: edges to nodes that can be computed at the same time, sorted by these nodes."""

    edges: Integers
    nodes: Integers
    starts: Integers  # where the edges of each node begin


@dataclass(frozen=True)
class Lattice:
    """Lattice of all spellings of W texts in pieces of a unigram vocabulary: an edge for each piece in a text."""

    tails: Integers  # (E,) the node before a piece
    heads: Integers  # (E,) the node behind it
    pieces: Integers  # (E,)
    firsts: Integers  # (W,) the node before a text
    lasts: Integers  # (W,) the node behind it

    @classmethod
    def of(cls, texts: Sequence[str], pieces: Sequence[str]) -> "Lattice":
        """Build the lattice of texts: find every piece in every text."""
        numbers = {piece: number for number, piece in enumerate(pieces)}
        edges: list[tuple[int, int, int]] = []
        bounds = [0]
        for text in texts:
            base = bounds[-1]
            for start in range(len(text)):
                for end in range(start + 1, min(start + LONGEST_PIECE, len(text)) + 1):
                    piece = numbers.get(text[start:end])
                    if piece is not None:
                        edges.append((base + start, base + end, piece))
            bounds.append(base + len(text) + 1)
        tails, heads, found = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        return cls(tails, heads, found, np.array(bounds[:-1]), np.array(bounds[1:]) - 1)

    def without_whole_texts(self) -> "Lattice":
        """Return the lattice without pieces that spell a text of several characters alone."""
        whole = (self.tails == self.firsts[self._texts]) & (self.heads == self.lasts[self._texts])
        return self._selected(~whole | (self.heads - self.tails == 1))

    def restricted(self, alive: NDArray[np.bool_]) -> "Lattice":
        """Return the lattice without dropped pieces; `alive`, (P,), is True for pieces to keep."""
        return self._selected(alive[self.pieces])

    def expected_counts(self, scores: Floats, counts: Floats) -> Floats:
        """Expected count of each piece in texts spelled at random, (P,): the forward-backward algorithm.

        Args:
            scores: (P,) log probabilities.
            counts: (W,) how often each text occurs.
        """
        weights = scores[self.pieces]
        before = self._sweep(self._left_to_right, self.tails, weights, np.logaddexp)
        behind = self._sweep(self._right_to_left, self.heads, weights, np.logaddexp)
        likelihood = before[self.lasts][self._texts]
        share = np.exp(before[self.tails] + weights + behind[self.heads] - likelihood)
        return np.bincount(self.pieces, share * counts[self._texts], minlength=len(scores)).astype(np.float64)

    def best_scores(self, scores: Floats) -> Floats:
        """Log probability of each text's best spelling, (W,): the Viterbi algorithm."""
        return self._sweep(self._left_to_right, self.tails, scores[self.pieces], np.maximum)[self.lasts]

    @cached_property
    def _texts(self) -> Integers:
        return np.searchsorted(self.firsts, self.tails, side="right") - 1

    @cached_property
    def _left_to_right(self) -> list[Turn]:
        return _turns(self.heads, self.heads - self.firsts[self._texts])

    @cached_property
    def _right_to_left(self) -> list[Turn]:
        return _turns(self.tails, self.lasts[self._texts] - self.tails)

    def _sweep(self, turns: list[Turn], origins: Integers, weights: Floats, add: np.ufunc) -> Floats:
        """Add up log probabilities from turn to turn; a node that no edge reaches has log probability 0."""
        totals = np.zeros(self.lasts[-1] + 1)
        for turn in turns:
            totals[turn.nodes] = add.reduceat(totals[origins[turn.edges]] + weights[turn.edges], turn.starts)
        return totals

    def _selected(self, edges: NDArray[np.bool_]) -> "Lattice":
        return Lattice(self.tails[edges], self.heads[edges], self.pieces[edges], self.firsts, self.lasts)


def _turns(nodes: Integers, distances: Integers) -> list[Turn]:
    """Edges in the order of their nodes' distance from where a sweep begins."""
    order = np.lexsort((nodes, distances))
    turns = []
    for edges in np.split(order, np.flatnonzero(np.diff(distances[order])) + 1):
        reached, starts = np.unique(nodes[edges], return_index=True)
        turns.append(Turn(edges, reached, starts))
    return turns


def _estimate(corpus: Lattice, counts: Floats, scores: Floats, alive: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Expectation and maximisation: expected counts and log probabilities of the pieces, both (P,)."""
    expected = corpus.expected_counts(scores, counts)
    for _ in range(ROUNDS - 1):
        expected = corpus.expected_counts(_log_share(expected, alive), counts)
    return expected, _log_share(expected, alive)


def _log_share(counts: Floats, alive: NDArray[np.bool_]) -> Floats:
    counts = np.maximum(counts, FEWEST)
    return np.log(counts) - np.log(counts[alive].sum())


def _most_frequent(words: Mapping[str, int]) -> dict[str, int]:
    """The most frequent words; among equally frequent ones a hash chooses, so that none is favoured by its letters."""
    ranked = sorted(words, key=lambda word: (-words[word], blake2b(word.encode(), digest_size=8).digest()))
    return {word: words[word] for word in sorted(ranked[:MOST_WORDS], key=lambda word: (-words[word], word))}


def _seeds(words: Mapping[str, int], texts: Mapping[str, int], most: int) -> dict[str, int]:
    """All characters of all words, and of the strings that occur twice those that cover most text, with counts."""
    level = _substrings(words, 1, {""})
    characters = {character: level[character] for character in sorted(level)}
    longer: dict[str, int] = {}
    for length in range(2, LONGEST_PIECE + 1):
        level = {part: count for part, count in _substrings(texts, length, level).items() if count > 1}
        longer |= level
    ranked = sorted(longer, key=lambda part: (-longer[part] * len(part), part))
    return characters | {part: longer[part] for part in ranked[:most]}


def _substrings(texts: Mapping[str, int], length: int, beginnings: Mapping[str, int] | set[str]) -> Counter[str]:
    """Strings of one length whose beginning, one character shorter, is worth following."""
    found: Counter[str] = Counter()
    for text, count in texts.items():
        for start in range(len(text) - length + 1):
            part = text[start : start + length]
            if part[:-1] in beginnings:
                found[part] += count
    return found
