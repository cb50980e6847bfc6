"""Training of tokenizers on lines of text: words, characters, bytes, BPE, WordPiece and unigram."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, chain, groupby
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import models, trainers

from heedful.config.schema import Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.registry import TOKENIZERS
from heedful.text.pipeline import BYTES, SPECIALS, UNK, assemble, normalizer, reserved, specials, splitter
from heedful.text.tokenizer import Tokenizer, require_utf8
from heedful.text.tokenizer_pair import TokenizerPair

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_PIECE = 16  # characters
MAX_WORDS = 200_000  # rarer words of a large text contribute little and take memory
SEEDS = 10  # initial pieces per piece of the final vocabulary
SHRINKAGE = 0.75  # share of the pieces that remain after a reduction
ROUNDS = 2  # rounds of expectation maximisation before each reduction
MIN_COUNT = 0.5  # minimum count of a piece, so that unused characters have a probability above 0
DIGITS = 6  # decimal digits of a score


def train_unigram(words: Mapping[str, int], size: int) -> list[tuple[str, float]]:
    """Train a unigram vocabulary of at most `size` pieces: all characters, and strings that make words most probable.

    Training starts with too many pieces. Repeatedly, their probabilities are estimated by expectation maximisation, and
    the pieces that are worth least are dropped. The worth of a piece is its expected count times the log-probability
    that is lost if its best spelling with other pieces replaces it.

    Args:
        words: Words and how often they occur.
        size: The maximum number of pieces, at least the number of distinct characters.

    Returns:
        Pieces and their log-probabilities, most probable first.
    """
    texts = _most_frequent(words)

    # The initial pieces are all characters and, of the strings that occur at least twice, those that cover most text.
    level = _substrings(words, 1, {""})
    seeds = {character: level[character] for character in sorted(level)}
    longer: dict[str, int] = {}
    # A string can occur twice only if its prefix does, so each length extends the strings of the previous length.
    for length in range(2, MAX_PIECE + 1):
        level = {part: count for part, count in _substrings(texts, length, level).items() if count > 1}
        longer |= level
    ranked = sorted(longer, key=lambda part: (-longer[part] * len(part), part))
    seeds |= {part: longer[part] for part in ranked[: SEEDS * size]}

    pieces = list(seeds)
    corpus = Lattice.of(list(texts), pieces)
    inside = Lattice.of(pieces, pieces).without_whole_texts()  # how each piece is spelled with other pieces
    counts = np.array(list(texts.values()), dtype=np.float64)
    character = np.array([len(piece) == 1 for piece in pieces])
    alive = np.ones(len(pieces), dtype=np.bool_)
    scores = _log_share(np.array(list(seeds.values()), dtype=np.float64), alive)
    expected, scores = _estimate(corpus, counts, scores, alive)
    while alive.sum() > size:
        # Without a piece, each occurrence is spelled with other pieces, at a lower score. A character has no other
        # spelling, so it is never dropped.
        worth = np.where(character, np.inf, expected * (scores - inside.best_scores(scores)))
        order = np.argsort(np.where(alive, -worth, np.inf), kind="stable")
        # Drop at most a quarter at a time, because the pieces that replace dropped ones become worth more.
        alive[order[max(size, int(SHRINKAGE * alive.sum())) :]] = False
        corpus, inside = corpus.restricted(alive), inside.restricted(alive)
        expected, scores = _estimate(corpus, counts, scores, alive)
    # Scores are rounded, so that rounding errors in sums do not affect the order; equal scores are ordered by name.
    costs = sorted((-round(float(scores[i]), DIGITS), pieces[i]) for i in np.flatnonzero(alive))
    return [(piece, -cost) for cost, piece in costs]


@dataclass(frozen=True)
class Turn:
    """Step of a sweep over a lattice: the edges into nodes that are computed at the same time, sorted by node."""

    edges: Integers
    nodes: Integers
    starts: Integers  # index in `edges` of the first edge of each node


@dataclass(frozen=True)
class Lattice:
    """Lattice of all spellings of W texts with P pieces: E edges, one for each place where a piece fits into a text."""

    tails: Integers  # (E,) the node before a piece
    heads: Integers  # (E,) the node after it
    pieces: Integers  # (E,) the index of the piece
    firsts: Integers  # (W,) the node before a text
    lasts: Integers  # (W,) the node after it

    @classmethod
    def of(cls, texts: Sequence[str], pieces: Sequence[str]) -> "Lattice":
        """Build the lattice of texts: find every piece in every text."""
        numbers = {piece: number for number, piece in enumerate(pieces)}
        edges: list[tuple[int, int, int]] = []
        bounds = [0]
        for text in texts:
            base = bounds[-1]
            for start in range(len(text)):
                for end in range(start + 1, min(start + MAX_PIECE, len(text)) + 1):
                    piece = numbers.get(text[start:end])
                    if piece is not None:
                        edges.append((base + start, base + end, piece))
            # A text of n characters has n + 1 nodes: before, between and after them.
            bounds.append(base + len(text) + 1)
        tails, heads, edge_pieces = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        return cls(tails, heads, edge_pieces, np.array(bounds[:-1]), np.array(bounds[1:]) - 1)

    def without_whole_texts(self) -> "Lattice":
        """Return the lattice without edges that span a whole text of several characters."""
        # Such an edge would make the piece itself its best spelling. Single characters have no other spelling.
        whole = (self.tails == self.firsts[self._texts]) & (self.heads == self.lasts[self._texts])
        return self._selected(~whole | (self.heads - self.tails == 1))

    def restricted(self, alive: NDArray[np.bool_]) -> "Lattice":
        """Return the lattice without dropped pieces. `alive`, bool, (P,), is True for pieces to keep."""
        return self._selected(alive[self.pieces])

    def expected_counts(self, scores: Floats, counts: Floats) -> Floats:
        """Compute the expected count of each piece, (P,), over all segmentations of the texts (forward-backward).

        Args:
            scores: (P,) log-probabilities.
            counts: (W,) how often each text occurs.
        """
        weights = scores[self.pieces]
        before = self._sweep(self._left_to_right, self.tails, weights, np.logaddexp)
        after = self._sweep(self._right_to_left, self.heads, weights, np.logaddexp)
        likelihood = before[self.lasts][self._texts]
        # The probability that the edge is part of the spelling: P(before) P(piece) P(after) / P(text).
        share = np.exp(before[self.tails] + weights + after[self.heads] - likelihood)
        return np.bincount(self.pieces, share * counts[self._texts], minlength=len(scores)).astype(np.float64)

    def best_scores(self, scores: Floats) -> Floats:
        """Compute the log-probability of the best spelling of each text, (W,), with the Viterbi algorithm."""
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
        """Return the log-probability of reaching each node; 0 for the nodes where a sweep starts.

        `add` combines the edges into a node: `np.logaddexp` for all spellings, `np.maximum` for the best one.
        """
        totals = np.zeros(self.lasts[-1] + 1)
        for turn in turns:
            totals[turn.nodes] = add.reduceat(totals[origins[turn.edges]] + weights[turn.edges], turn.starts)
        return totals

    def _selected(self, edges: NDArray[np.bool_]) -> "Lattice":
        return Lattice(self.tails[edges], self.heads[edges], self.pieces[edges], self.firsts, self.lasts)


def _turns(nodes: Integers, distances: Integers) -> list[Turn]:
    """Group edges into turns, ordered by the distance of their nodes from the start of a sweep."""
    # Nodes at the same distance do not depend on each other, and are computed together.
    order = np.lexsort((nodes, distances))
    turns = []
    for edges in np.split(order, np.flatnonzero(np.diff(distances[order])) + 1):
        turn_nodes, starts = np.unique(nodes[edges], return_index=True)
        turns.append(Turn(edges, turn_nodes, starts))
    return turns


def _estimate(corpus: Lattice, counts: Floats, scores: Floats, alive: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Estimate expected counts and log-probabilities of the pieces, both (P,), by expectation maximisation."""
    expected = corpus.expected_counts(scores, counts)
    for _ in range(ROUNDS - 1):
        expected = corpus.expected_counts(_log_share(expected, alive), counts)
    return expected, _log_share(expected, alive)


def _log_share(counts: Floats, alive: NDArray[np.bool_]) -> Floats:
    counts = np.maximum(counts, MIN_COUNT)
    return np.log(counts) - np.log(counts[alive].sum())


def _most_frequent(words: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent words; ties are decided by a hash, so that no letter is favoured."""
    ranked = sorted(words, key=lambda word: (-words[word], blake2b(word.encode(), digest_size=8).digest()))
    return {word: words[word] for word in sorted(ranked[:MAX_WORDS], key=lambda word: (-words[word], word))}


def _substrings(texts: Mapping[str, int], length: int, beginnings: Mapping[str, int] | set[str]) -> Counter[str]:
    """Count the substrings of one length whose prefix, one character shorter, is one of `beginnings`."""
    parts: Counter[str] = Counter()
    for text, count in texts.items():
        for start in range(len(text) - length + 1):
            part = text[start : start + length]
            if part[:-1] in beginnings:
                parts[part] += count
    return parts


CHARACTER_COVERAGE = 0.9995  # share of the characters of the text, as in SentencePiece; the rest is split into bytes
MIN_PAIRS = 2  # occurrences of two neighbours before they may be merged, as in subword-nmt
MAX_TRAINING_WORD = 64  # characters; longer words are split there, since learning from one takes quadratic time
MAX_WORDPIECE_WORD = 100  # characters: the search for the longest piece takes quadratic time

Words = Counter[str]
Merges = list[tuple[str, str]]


def train_tokenizer(lines: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Train a tokenizer with a vocabulary of at most `config.vocab_size` entries on lines, which are read once.

    - "word": the most frequent words.
    - "character": the most frequent characters; "byte": the 256 bytes, whatever the lines.
    - "bpe": the most frequent pairs of pieces are merged, from characters upwards (Sennrich et al. 2016).
    - "wordpiece": the vocabulary of "bpe", matched longest piece first (Wu et al. 2016, section 4.1); a word of more
      than 100 characters is unknown.
    - "unigram": the pieces that make the text most probable (Kudo 2018).

    Raises:
        InputError: `vocab_size` is too small, the settings do not fit the kind, the text is empty, or a line contains a
            lone surrogate.
    """
    check_trainable(config)
    normal, split = normalizer(config), splitter(config)
    # Each distinct word is in memory once, however long the text is.
    words: Words = Counter()
    for line in lines:
        words.update(word for word, _ in split.pre_tokenize_str(normal.normalize_str(require_utf8(line))))
    library = assemble(TOKENIZERS[config.kind](words, config), config)
    return Tokenizer(library.to_str(), replace(config, dropout=0.0, path=None))


def check_trainable(config: TokenizerConfig) -> None:
    """Check that a tokenizer can be trained with these settings on any text."""
    if config.kind == "foreign":
        raise InputError('a tokenizer of kind "foreign" is converted, not trained; set tokenizer.path to its folder')
    if config.kind == "byte" and not config.byte_fallback:
        raise InputError('a tokenizer of kind "byte" spells everything in bytes; set tokenizer.byte_fallback = true')
    _room(config)


def one_tokenizer(recipe: Recipe, texts: Iterable[str], report: Callable[[str], None]) -> TokenizerPair:
    """Return a pair whose sides share one tokenizer: the recipe's, or a new one that is trained on `texts`."""
    tokenizer = existing_tokenizer(recipe)
    if tokenizer is None:
        report(f"training the {recipe.tokenizer.kind} tokenizer")
        tokenizer = train_tokenizer(texts, recipe.tokenizer)
    return TokenizerPair(tokenizer, tokenizer)


def existing_tokenizer(recipe: Recipe) -> Tokenizer | None:
    """Load a recipe's tokenizer; if it has none, check that one can be trained and return None."""
    path = recipe.tokenizer.path
    if path is None:
        check_trainable(recipe.tokenizer)
        return None
    pair = TokenizerPair.load(Path(path))
    if not pair.joint:
        raise InputError(f"{path}: contains a tokenizer for each of two languages; give the folder of one")
    return pair.source


def train_pair(source_lines: Iterable[str], target_lines: Iterable[str], config: TokenizerConfig) -> TokenizerPair:
    """Train the tokenizers of a translator: one on both languages if `config.joint` is true, else one on each."""
    if config.joint:
        both = train_tokenizer(chain(source_lines, target_lines), config)
        return TokenizerPair(both, both)
    return TokenizerPair(train_tokenizer(source_lines, config), train_tokenizer(target_lines, config))


def word_tokenizer(ids: Mapping[str, int], config: TokenizerConfig) -> Tokenizer:
    """Create a tokenizer of kind "word" from word ids, such as `{"<pad>": 0, "<unk>": 1, "Eat": 345, "an": 128}`.

    Special tokens may be left out of `ids`. Unused ids get names that no text can contain.
    """
    if config.kind != "word":
        raise InputError(f'word ids define a tokenizer of kind "word", not "{config.kind}"')
    head = {name: i for i, name in enumerate(reserved(config))}
    names = {i: name for name, i in head.items()}
    for word, i in ids.items():
        if head.get(word) == i:
            continue
        if i < 0 or i in names:
            raise InputError(f"the id {i} of {word!r} is taken; give each word its own id, {len(head)} or above")
        names[i] = f" {word}"
    vocabulary = {names.get(i, f"<unused{i}>"): i for i in range(max(names) + 1)}
    model = models.WordLevel(vocabulary, unk_token=SPECIALS[UNK])
    return Tokenizer(assemble(model, config).to_str(), replace(config, vocab_size=len(vocabulary)))


def _room(config: TokenizerConfig) -> int:
    """Return the number of pieces that fit into the vocabulary besides the reserved names, after checking its size."""
    room = config.vocab_size - len(reserved(config))
    fewest = 0 if config.kind == "byte" else 1
    if room < fewest:
        bytes_too = f" and {len(BYTES)} bytes of byte fallback" if config.byte_fallback else ""
        raise InputError(
            f"tokenizer.vocab_size = {config.vocab_size} is too small for {len(specials(config))} special tokens"
            f"{bytes_too}; set it to at least {len(reserved(config)) + fewest}"
        )
    return room


def word_model(words: Words, config: TokenizerConfig) -> models.Model:
    """Create a model with the most frequent words."""
    return models.WordLevel(_numbered(_ranked(words)[: _room(config)], config), unk_token=SPECIALS[UNK])


def character_model(words: Words, config: TokenizerConfig) -> models.Model:
    """Create a model with the most frequent characters."""
    characters = _ranked(_count_characters(words))[: _room(config)]
    return _library_model(_numbered(characters, config), [], config)


def byte_model(_: Words, config: TokenizerConfig) -> models.Model:
    """Create a model without merges or characters, so that each character is split into bytes."""
    return _library_model(_numbered([], config), [], config)


def bpe_model(words: Words, config: TokenizerConfig) -> models.Model:
    """Create a model with merges of the most frequent pairs, from characters upwards."""
    return _library_model(*_merged(words, config), config)


def wordpiece_model(words: Words, config: TokenizerConfig) -> models.Model:
    """Create a model with the pieces of `bpe_model`, matched longest piece first."""
    vocabulary, _ = _merged(words, config)
    return models.WordPiece(
        vocabulary,
        unk_token=SPECIALS[UNK],
        continuing_subword_prefix="",
        max_input_chars_per_word=MAX_WORDPIECE_WORD,
    )


def unigram_model(words: Words, config: TokenizerConfig) -> models.Model:
    """Create a model with the pieces that make the text most probable."""
    pieces = train_unigram(_training_words(words, config), _room(config))
    least = pieces[-1][1]  # keeps the minimum, from which the library derives the cost of an unknown character
    head = [(name, least) for name in reserved(config)]
    return models.Unigram([*head, *pieces], unk_id=UNK, byte_fallback=config.byte_fallback)


def _library_model(vocabulary: dict[str, int], merges: Merges, config: TokenizerConfig) -> models.BPE:
    return models.BPE(vocabulary, merges, unk_token=SPECIALS[UNK], byte_fallback=config.byte_fallback)


def _merged(words: Words, config: TokenizerConfig) -> tuple[dict[str, int], Merges]:
    """Learn the vocabulary and the merges of byte-pair encoding."""
    # The learner has no splitter: each line that it reads is one word, with the space before it.
    learner = tokenizers.Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=MIN_PAIRS,
        special_tokens=list(reserved(config)),
        show_progress=False,
    )
    learner.train_from_iterator(_training_words(words, config).elements(), trainer)
    model = json.loads(learner.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]


def _count_characters(words: Words) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return counts


def _ranked(counts: Counter[str]) -> list[str]:
    """Return the counted names in order, most frequent first."""
    if not counts:
        raise InputError("the training text of the tokenizer is empty; give files that contain text")
    return sorted(counts, key=lambda name: (-counts[name], name))


def _training_words(words: Words, config: TokenizerConfig) -> Words:
    """Return the words that pieces are learned from: without rare characters, and with bounded length."""
    # The characters that become pieces: all or, with byte fallback, those that make up nearly all of the text.
    counts = _count_characters(words)
    alphabet, room = _ranked(counts), _room(config)
    if config.byte_fallback:
        before = accumulate((counts[character] for character in alphabet), initial=0)
        enough = CHARACTER_COVERAGE * counts.total()
        alphabet = [character for character, count in zip(alphabet[:room], before, strict=False) if count < enough]
    elif len(alphabet) > room:
        raise InputError(
            f"the text has {len(alphabet)} distinct characters, but tokenizer.vocab_size = {config.vocab_size} has "
            f"room for {room}; set it to at least {len(alphabet) + len(specials(config))}, or set "
            "tokenizer.byte_fallback = true"
        )
    characters = set(alphabet)
    parts: Words = Counter()
    for word, count in words.items():
        # A rare character is split into bytes, so pieces are learned from the runs before and after it.
        for is_known, group in groupby(word, characters.__contains__):
            run = "".join(group) if is_known else ""
            for start in range(0, len(run), MAX_TRAINING_WORD):
                parts[run[start : start + MAX_TRAINING_WORD]] += count
    return parts


def _numbered(pieces: Iterable[str], config: TokenizerConfig) -> dict[str, int]:
    return {name: i for i, name in enumerate([*reserved(config), *pieces])}
