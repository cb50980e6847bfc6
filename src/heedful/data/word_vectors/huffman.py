"""Huffman codes of a vocabulary, for hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013b, section 2.1).

V vocabulary, P longest path.
"""

from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np


class HuffmanCodes(NamedTuple):
    """The path of each word from the root of a binary tree: its inner nodes, and the branch taken at each of them."""

    nodes: np.ndarray  # (V, P) int64: inner nodes from the root on, numbered from 0; the rest is 0
    branches: np.ndarray  # (V, P) bool: the code of the word
    lengths: np.ndarray  # (V,) int64


def huffman_codes(counts: np.ndarray) -> HuffmanCodes:
    """Build the Huffman tree of words with the given counts: frequent words get short codes.

    Words that do not occur have no path. Ties are decided by the number of the word or node, so that the same counts
    give the same tree.
    """
    words = np.flatnonzero(counts).tolist()
    heap = [(int(counts[word]), word) for word in words]
    heapify(heap)
    parent: dict[int, tuple[int, bool]] = {}  # of words by their number, of inner nodes by theirs after the words
    inner = 0
    while len(heap) > 1:
        first, left = heappop(heap)
        second, right = heap[0]
        parent[left], parent[right] = (inner, False), (inner, True)
        heapreplace(heap, (first + second, len(counts) + inner))
        inner += 1
    paths = [_path(word, parent, len(counts)) for word in words]
    longest = max(map(len, paths), default=0)
    nodes = np.zeros((len(counts), longest), np.int64)
    branches = np.zeros((len(counts), longest), bool)
    lengths = np.zeros(len(counts), np.int64)
    for word, path in zip(words, paths, strict=True):
        lengths[word] = len(path)
        nodes[word, : len(path)] = [node for node, _ in path]
        branches[word, : len(path)] = [branch for _, branch in path]
    return HuffmanCodes(nodes, branches, lengths)


def _path(word: int, parent: dict[int, tuple[int, bool]], size: int) -> list[tuple[int, bool]]:
    """The inner nodes above a word with the branch taken at each, from the root on."""
    path = []
    node = word
    while node in parent:
        above, branch = parent[node]
        path.append((above, branch))
        node = size + above
    return path[::-1]
