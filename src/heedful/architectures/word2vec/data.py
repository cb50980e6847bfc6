"""Data of word2vec: text to words and phrases, their token stream, context windows, and codes of the vocabulary.

After Mikolov et al. (2013a, 2013b) and the program of its authors.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from heapq import heapify, heappop, heapreplace
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.schema import CorpusConfig, Recipe, TokenizerConfig
from heedful.data.preparation.prepared_data import Preparation, PreparedData, one_store_for_all, prepare_data
from heedful.data.preparation.text import all_texts, check_documents, long_lines
from heedful.data.readers.filters import DropReport
from heedful.data.stream import Encoded, TokenStream
from heedful.errors import InputError
from heedful.random_numbers import WORDS, draw_at
from heedful.text.pipeline import reserved
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer, word_tokenizer
from heedful.text.words import split_words
from heedful.wording import counted

FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
ASCII_WORD = re.compile(r"\w+", re.ASCII)


def prepare_words(
    recipe: Recipe,
    options: Word2VecConfig,
    folder: Path,
    report: Callable[[str], None],
    given: TokenizerPair | None = None,
) -> PreparedData[TokenStream]:
    """Return the words of a recipe's documents as a stored token stream; words outside the vocabulary are left out.

    Arguments and errors are those of `heedful.data.preparation.prepared_data.prepare_data`; the options decide which
    pairs of words become phrases.
    """
    if given is None:
        check_documents(recipe)

    def documents(
        corpora: Sequence[CorpusConfig], passes: Sequence[Container[str]], drops: DropReport
    ) -> Iterator[Sequence[str]]:
        texts = all_texts(corpora, recipe, drops)
        return join_all((words_of(text, recipe.tokenizer) for text in texts), passes)

    def tokenizers() -> TokenizerPair:
        passes: list[Container[str]] = []
        # Each pass joins what the passes before have joined: "new_york" and "times" in the second.
        for threshold in () if recipe.tokenizer.path else options.phrases:
            words = documents(recipe.data.train, passes, DropReport())
            phrases = find_phrases(words, threshold, options.phrase_discount)
            report(f"{counted(len(phrases), 'phrases')} with a score above {threshold:g}")
            passes.append(phrases)
        tokenizer = given_tokenizer(recipe)
        if tokenizer is None:
            report("counting the words")
            words = documents(recipe.data.train, passes, DropReport())
            tokenizer = frequent_words(Counter(chain.from_iterable(words)), recipe.tokenizer)
        return TokenizerPair(tokenizer, tokenizer)

    def write(place: Path, corpora: Sequence[CorpusConfig], made: TokenizerPair, drops: DropReport) -> None:
        passes = vocabulary_phrases(made.source, options)
        stream = TokenStream.write(place, encoded(documents(corpora, passes, drops), made.source), len(made.source))
        size = counted(len(stream.offsets) - 1, "documents")
        report(f"{place.name}: {size}, {counted(len(stream) - len(stream.offsets) + 1, 'words')}, {drops}")

    form = FORMS.get(recipe.tokenizer.normalization, "")
    words = Preparation(
        parts=one_store_for_all(recipe.data),
        tokenizers=tokenizers,
        write=write,
        open=TokenStream.open,
        texts=lambda corpus: long_lines(corpus, recipe.data),
        settings=f", phrases {options.phrases} {options.phrase_discount}{', in ' * bool(form)}{form}",
    )
    return prepare_data(recipe, folder, words, report, given)


def words_of(text: str, config: TokenizerConfig) -> list[str]:
    """Cut a normalised text into words: at spaces only, if it is already tokenized, else without punctuation marks."""
    if form := FORMS.get(config.normalization):
        text = unicodedata.normalize(form, text)
    text = text.lower() if config.lowercase else text
    if config.pretokenized:
        return text.split()
    words = ASCII_WORD.findall(text) if text.isascii() else split_words(text)  # the same words, but at once
    return [word for word in words if word[0].isalnum()]


def frequent_words(counts: Counter[str], config: TokenizerConfig) -> Tokenizer:
    """Make a word tokenizer of the most frequent words, in the order of their frequency; code points decide ties."""
    if not counts:
        raise InputError("the training text holds no words; give other files")
    # Its texts are words already, with spaces between them.
    spaced = replace(config, pretokenized=True)
    first = len(reserved(spaced))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: config.vocab_size - first]
    return word_tokenizer({word: i for i, word in enumerate(ranked, start=first)}, spaced)


def encoded(documents: Iterable[Sequence[str]], tokenizer: Tokenizer) -> Iterator[Encoded]:
    """Yield the numbers of each document's words, without those outside the vocabulary, and the size of its text."""
    numbers = word_numbers(tokenizer)
    for words in documents:
        ids = [numbers[word] for word in words if word in numbers]
        yield ids, sum(len(word.encode("utf-8")) + 1 for word in words)


def vocabulary_phrases(tokenizer: Tokenizer, options: Word2VecConfig) -> list[Container[str]]:
    """List the phrases of a vocabulary once for each pass that joins them; all texts are joined alike."""
    return [frozenset(word_numbers(tokenizer))] * len(options.phrases)


def word_numbers(tokenizer: Tokenizer) -> dict[str, int]:
    """Map each word of the vocabulary of a word tokenizer to its number."""
    ids = range(tokenizer.first_word, len(tokenizer))
    return {text.removeprefix(" "): i for i, text in zip(ids, tokenizer.texts(ids), strict=True)}


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
