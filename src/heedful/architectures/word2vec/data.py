"""word2vec data: words and phrases of a text, context windows, negative samples and Huffman codes.

Follows Mikolov et al. (2013a, 2013b) and the authors' program.

V vocabulary, N words in a batch.
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
from heedful.data.preparation.prepared_data import DataFolder, PreparedData, one_store_for_all
from heedful.data.preparation.text import all_texts, check_documents, long_lines
from heedful.data.readers.drop_report import DropReport
from heedful.data.stream import Encoded, TokenStream
from heedful.errors import InputError
from heedful.random_numbers import WORDS, draw_at
from heedful.text.pipeline import reserved
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import existing_tokenizer, word_tokenizer
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
    """Return the words of a recipe's documents as a stored token stream, without words outside the vocabulary.

    `options` contains the phrase settings; the other arguments are as for
    `heedful.data.preparation.prepared_data.DataFolder`.
    """
    if given is None:
        check_documents(recipe)

    def documents(
        corpora: Sequence[CorpusConfig], passes: Sequence[Container[str]], drops: DropReport
    ) -> Iterator[Sequence[str]]:
        texts = all_texts(corpora, recipe, drops)
        return join_all((words_of(text, recipe.tokenizer) for text in texts), passes)

    def new_tokenizers() -> TokenizerPair:
        passes: list[Container[str]] = []
        # Each pass can extend the phrases of earlier ones: the second may join "new_york" and "times".
        for threshold in () if recipe.tokenizer.path else options.phrases:
            words = documents(recipe.data.train, passes, DropReport())
            phrases = find_phrases(words, threshold, options.phrase_discount)
            report(f"{counted(len(phrases), 'phrases')} with a score above {threshold:g}")
            passes.append(phrases)
        tokenizer = existing_tokenizer(recipe)
        if tokenizer is None:
            report("counting the words")
            words = documents(recipe.data.train, passes, DropReport())
            tokenizer = frequent_words(Counter(chain.from_iterable(words)), recipe.tokenizer)
        return TokenizerPair(tokenizer, tokenizer)

    form = FORMS.get(recipe.tokenizer.normalization, "")
    data = DataFolder(
        recipe,
        folder,
        TokenStream.open,
        one_store_for_all(recipe.data),
        report,
        given,
        settings=f", phrases {options.phrases} {options.phrase_discount}{', in ' * bool(form)}{form}",
    )
    prepared = data.stored()
    if prepared is None:
        with data.build(lambda corpus: long_lines(corpus, recipe.data)):
            tokenizers = given or new_tokenizers()
            vocabulary, passes = tokenizers.source, vocabulary_phrases(tokenizers.source, options)
            for store, corpora, drops in data.new_stores(tokenizers):
                words = encoded(documents(corpora, passes, drops), vocabulary)
                stream = TokenStream.write(store, words, len(vocabulary))
                size = counted(len(stream.offsets) - 1, "documents")
                report(f"{store.name}: {size}, {counted(len(stream) - len(stream.offsets) + 1, 'words')}, {drops}")
        prepared = data.built()
    return prepared


def words_of(text: str, config: TokenizerConfig) -> list[str]:
    """Normalise a text and split it into words.

    A pretokenized text is split only at whitespace. Punctuation marks are dropped from other texts.
    """
    if form := FORMS.get(config.normalization):
        text = unicodedata.normalize(form, text)
    text = text.lower() if config.lowercase else text
    if config.pretokenized:
        return text.split()
    words = ASCII_WORD.findall(text) if text.isascii() else split_words(text)  # the regular expression is faster
    return [word for word in words if word[0].isalnum()]


def frequent_words(counts: Counter[str], config: TokenizerConfig) -> Tokenizer:
    """Create a word tokenizer with the most frequent words, in order of frequency; code points break ties."""
    if not counts:
        raise InputError("the training text has no words; give other files")
    # The tokenizer's inputs are words separated by spaces.
    spaced = replace(config, pretokenized=True)
    first = len(reserved(spaced))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: config.vocab_size - first]
    return word_tokenizer({word: i for i, word in enumerate(ranked, start=first)}, spaced)


def encoded(documents: Iterable[Sequence[str]], tokenizer: Tokenizer) -> Iterator[Encoded]:
    """Yield, for each document, the ids of its words that are in the vocabulary, and the size of its text in bytes."""
    numbers = word_numbers(tokenizer)
    for words in documents:
        ids = [numbers[word] for word in words if word in numbers]
        yield ids, sum(len(word.encode("utf-8")) + 1 for word in words)


def vocabulary_phrases(tokenizer: Tokenizer, options: Word2VecConfig) -> list[Container[str]]:
    """Return the vocabulary as the phrases of every pass, so that phrases in new texts are joined as in training."""
    return [frozenset(word_numbers(tokenizer))] * len(options.phrases)


def word_numbers(tokenizer: Tokenizer) -> dict[str, int]:
    ids = range(tokenizer.first_word, len(tokenizer))
    return {text.removeprefix(" "): i for i, text in zip(ids, tokenizer.texts(ids), strict=True)}


JOINER = "_"
MAX_PAIRS = 1 << 22  # distinct word pairs in memory while they are counted; if there are more, the rarest are dropped


def join(words: Sequence[str], phrases: Container[str]) -> list[str]:
    """Join the neighbouring words of a document that form a phrase, from left to right.

    A new phrase is not joined to the next word in the same pass; further passes form longer phrases.
    """
    joined: list[str] = []
    is_open = False  # True if the last word of `joined` may begin a phrase
    for word in words:
        if is_open and (phrase := joined[-1] + JOINER + word) in phrases:
            joined[-1] = phrase
        else:
            joined.append(word)
            phrase = ""
        is_open = not phrase
    return joined


def join_all(documents: Iterable[Sequence[str]], passes: Sequence[Container[str]]) -> Iterator[Sequence[str]]:
    """Yield documents with their phrases joined in several passes; `passes` has the phrases of each pass."""
    return (reduce(join, passes, words) for words in documents)


def find_phrases(documents: Iterable[Sequence[str]], threshold: float, discount: int) -> frozenset[str]:
    """Find the pairs of neighbouring words whose score is above a threshold; return them joined, as in "new_york".

    score(a, b) = (count(ab) - discount) / (count(a) count(b)) x N, formula 6 of Mikolov et al. (2013b) times the number
    N of words, as in the authors' program, so that a threshold applies to texts of any size. The discount prevents
    phrases of rare words.
    """
    words: Counter[str] = Counter()
    pair_counts: Counter[tuple[str, str]] = Counter()
    least = 1
    for document in documents:
        words.update(document)
        pair_counts.update(pairwise(document))
        while len(pair_counts) > MAX_PAIRS:  # as in the authors' program
            least += 1
            pair_counts = Counter({pair: count for pair, count in pair_counts.items() if count >= least})
    total = words.total()
    return frozenset(
        a + JOINER + b
        for (a, b), count in pair_counts.items()
        if (count - discount) * total > threshold * words[a] * words[b]
    )


class HuffmanCodes(NamedTuple):
    """Path of each word from the root of a binary tree: the inner nodes on it, and the branch at each of them.

    P is the length of the longest path.
    """

    nodes: np.ndarray  # (V, P) int64: the numbers, from 0, of the inner nodes, the root first; padded with 0
    branches: np.ndarray  # (V, P) bool: the code of the word, True for the second child; padded with False
    lengths: np.ndarray  # (V,) int64: the length of the path of each word


def huffman_codes(counts: np.ndarray) -> HuffmanCodes:
    """Build the Huffman codes of words: frequent words have short codes, and words that do not occur have none."""
    words = np.flatnonzero(counts).tolist()
    # The number of the word or inner node breaks ties, so that the tree depends only on the counts.
    heap = [(int(counts[word]), word) for word in words]
    heapify(heap)
    parent: dict[int, tuple[int, bool]] = {}  # the keys are numbers of words, and V + n for inner node n
    inner = 0
    while len(heap) > 1:
        first, low = heappop(heap)
        second, high = heap[0]
        parent[low], parent[high] = (inner, False), (inner, True)
        # The two rarest become the children of a new node, whose count is the sum of their counts.
        heapreplace(heap, (first + second, len(counts) + inner))
        inner += 1
    paths = {}
    for word in words:
        path, node = [], word
        while node in parent:
            path.append(parent[node])
            node = len(counts) + parent[node][0]
        paths[word] = path[::-1]  # starting at the root
    max_length = max(map(len, paths.values()), default=0)
    nodes = np.zeros((len(counts), max_length), np.int64)
    branches = np.zeros((len(counts), max_length), bool)
    lengths = np.zeros(len(counts), np.int64)
    for word, path in paths.items():
        lengths[word] = len(path)
        nodes[word, : len(path)] = [node for node, _ in path]
        branches[word, : len(path)] = [branch for _, branch in path]
    return HuffmanCodes(nodes, branches, lengths)


BLOCK = 1 << 24  # tokens that are counted at a time


@dataclass(frozen=True)
class WordWindows:
    """Words in the order of the text, with the sizes of their context windows."""

    words: np.ndarray  # (N,) int64
    before: np.ndarray  # (N,) int64: context words before the word
    after: np.ndarray  # (N,) int64

    @property
    def sizes(self) -> np.ndarray:
        return self.before + self.after


def count_words(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Return the number of occurrences of each word in a stream, int64, (V,); special tokens have the count 0."""
    counts = np.zeros(vocab_size, np.int64)
    # The stream is mapped from a file, and `bincount` would convert all of it to int64 in memory at once.
    for begin in range(0, len(ids), BLOCK):
        counts += np.bincount(ids[begin : begin + BLOCK], minlength=vocab_size)
    counts[: EOS + 1] = 0
    return counts


def keep_probabilities(counts: np.ndarray, subsample: float) -> np.ndarray:
    """Compute the probability of keeping each word in the subsampling of frequent words, float64, (V,).

    It is sqrt(t / f) + t / f for a word of frequency f and t = `subsample`, at most 1, as in the program of Mikolov et
    al. (2013b); section 2.3 of the paper has only the first term. With t = 0, all words that occur are kept.
    """
    share = subsample * counts.sum() / np.maximum(counts, 1)
    probabilities = np.minimum(np.sqrt(share) + share, 1.0) if subsample else np.ones(len(counts))
    return np.where(counts > 0, probabilities, 0.0)


def draw_windows(
    ids: np.ndarray, positions: np.ndarray, piece: int, keep: np.ndarray, window: int, key: tuple[int, ...]
) -> WordWindows:
    """Sample which words are kept, and the window of each: 1 to `window` words on either side.

    Both depend only on the key and the position of a word, so that the windows do not depend on the batch size. Windows
    end at the borders of documents and of pieces of text. Words that are not kept are skipped, not counted.

    Args:
        ids: Tokens of consecutive pieces of text, in which <eos> ends a document, shape (T,).
        positions: The position of each token in its stream, shape (T,).
        piece: The number of tokens in a piece; the last piece may have fewer.
        keep: The probability with which each word is kept, (V,), from `keep_probabilities`.
        window: The maximum number of context words on either side.
        key: Seed and epoch.
    """
    # The upper 32 bits of a word's random number decide whether it is kept, the lower 32 the size of its window.
    numbers = draw_at(positions, *key, WORDS)
    is_kept = (numbers >> np.uint64(32)) * 2.0**-32 < keep[ids]
    sizes = 1 + (numbers[is_kept] & np.uint64(0xFFFFFFFF)).astype(np.int64) % window
    ends = ids == EOS
    ends[piece - 1 :: piece] = True
    document = (np.cumsum(ends) - ends)[is_kept]  # the number of the document of each kept word
    # From here on, indices count only kept words. The first and last kept word of a document limit its windows.
    order = np.arange(len(document))
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    lengths = np.diff(starts, append=len(document))
    first = np.repeat(starts, lengths)
    last = first + np.repeat(lengths, lengths) - 1
    return WordWindows(ids[is_kept].astype(np.int64), np.minimum(sizes, order - first), np.minimum(sizes, last - order))


def pairs(windows: WordWindows) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of a centre word and a context word in its window, as two arrays of indices into the batch.

    Both arrays are int64, (pairs,), ordered by the index of the centre word, then by the index of the context word.
    """
    centres = np.repeat(np.arange(len(windows.words)), windows.sizes)
    firsts = np.cumsum(windows.sizes) - windows.sizes
    # Steps run from -before to after - 1; steps of 0 or more are increased by 1, which skips the centre word.
    step = np.arange(len(centres)) - np.repeat(firsts, windows.sizes) - np.repeat(windows.before, windows.sizes)
    return centres, centres + step + (step >= 0)


class NoiseDistribution:
    """Distribution of negative samples, proportional to count^power.

    It is stored as an alias table (Walker 1977), which takes two lookups per sample.
    """

    def __init__(self, counts: np.ndarray, power: float) -> None:
        weights = np.where(counts > 0, counts.astype(np.float64) ** power, 0.0)
        self.threshold, self.alias = alias_table(weights / weights.sum())

    def draw(self, numbers: np.ndarray) -> np.ndarray:
        """Map random 64-bit numbers, of any shape, to words sampled from the distribution, int64."""
        # The upper 32 bits choose a column, the lower 32 one of its two words.
        column = ((numbers >> np.uint64(32)) * np.uint64(len(self.alias)) >> np.uint64(32)).astype(np.int64)
        chance = (numbers & np.uint64(0xFFFFFFFF)) * 2.0**-32
        return np.where(chance < self.threshold[column], column, self.alias[column])


def alias_table(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Build the alias table of a distribution: column i contains item i up to a threshold, then one other item.

    Return the thresholds, float64, and the other items, int64, both (V,).
    """
    # Each column has probability 1 / V: items with less share their columns with items that have more.
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
    threshold[small + large] = 1.0  # up to rounding, these items fill their columns
    return threshold, alias


@dataclass(frozen=True)
class WordBlocks:
    """Blocks of consecutive words and their contexts, so that one matrix multiplication scores many pairs.

    B blocks, L words in a block, C = window + L + window words in and around it. Padding in the last block has no
    context words.
    """

    words: np.ndarray  # (B, L) int64
    around: np.ndarray  # (B, C) int64: the words of the block with those before and after it
    in_window: np.ndarray  # (B, C, L) bool: True where a word is in the window of a word of the block
    sizes: np.ndarray  # (B, L) int64: the number of context words of each word


def blocks(windows: WordWindows, window: int, length: int) -> WordBlocks:
    """Split a batch into one or more blocks of `length` words, which together contain the same pairs as `pairs`."""
    # Scoring pair by pair would read each vector many times. The vectors of a block and of the words around it are two
    # matrices, whose product contains all scores, and `in_window` selects the scores of pairs.
    count = len(windows.words)
    rest = -count % length if count else length
    row = np.pad(windows.words, (window, rest + window))
    before, after = (np.pad(side, (0, rest)).reshape(-1, 1, length) for side in (windows.before, windows.after))
    size = length + 2 * window
    steps = np.arange(size)[:, None] - window - np.arange(length)
    # In 16 bits, comparisons are fast; a negative number becomes a large one.
    first, span = steps.astype(np.uint16) + before.astype(np.uint16), (before + after).astype(np.uint16)
    return WordBlocks(
        words=row[window : window + count + rest].reshape(-1, length),
        around=np.lib.stride_tricks.sliding_window_view(row, size)[::length],
        in_window=(first <= span) & (steps != 0),
        sizes=np.pad(windows.sizes, (0, rest)).reshape(-1, length),
    )
