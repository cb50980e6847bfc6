import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.pipeline import BYTES, SPECIALS
from heedful.text.training import CHARACTER_COVERAGE, train_pair, train_tokenizer

KINDS = ("word", "character", "byte", "bpe", "unigram", "wordpiece")
TIES = ["ab ba cd dc ef fe", "xy yx ab cd zw wz", "fe ef yx wz dc ba", "苹果 果苹 Äß ßÄ"] * 3

DIGESTS = f"""
from heedful.config.schema import TokenizerConfig
from heedful.text.training import train_tokenizer
for kind in {KINDS!r}:
    print(train_tokenizer({TIES!r}, TokenizerConfig(kind=kind, vocab_size=293)).digest)
"""


def vocabulary(lines, **settings):
    tokenizer = train_tokenizer(lines, TokenizerConfig(**settings))
    return tokenizer.pieces(range(len(tokenizer)))


def bytes_and_pairs_by_hand(lines, size):
    """Byte-pair encoding as in Sennrich et al. 2016, figure 1: recount everything, merge the most frequent pair."""
    words = Counter(f" {word}" for line in lines for word in line.split(" "))
    pieces = [*SPECIALS, *sorted({character for word in words for character in word})]
    spelled = {word: list(word) for word in words}
    while len(pieces) < size:
        pairs = Counter()
        for word, symbols in spelled.items():
            for pair in pairwise(symbols):
                pairs[pair] += words[word]
        first = min(pairs, key=lambda pair: (-pairs[pair], *map(pieces.index, pair)), default=None)
        if first is None or pairs[first] < 2:
            break
        if "".join(first) not in pieces:
            pieces.append("".join(first))
        for symbols in spelled.values():
            place = 0
            while place + 1 < len(symbols):
                if (symbols[place], symbols[place + 1]) == first:
                    symbols[place : place + 2] = ["".join(first)]
                place += 1
    return pieces


@given(st.lists(st.lists(st.text("abcd", min_size=1, max_size=7), min_size=1, max_size=5), min_size=1, max_size=7))
def test_merges_are_those_of_byte_pair_encoding(sentences):
    lines = [" ".join(words) for words in sentences]
    settings = {"kind": "bpe", "vocab_size": 31, "byte_fallback": False, "pretokenized": True}
    shown = [piece.replace(" ", "▁") for piece in bytes_and_pairs_by_hand(lines, 31)]
    assert vocabulary(lines, **settings) == shown


def test_the_same_lines_give_the_same_files_in_any_process():
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", DIGESTS],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed},
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate()[0].split() for run in runs)
    assert first == second
    assert len(set(first)) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_the_vocabulary_has_its_head_and_its_bound(kind, byte_fallback):
    if kind == "byte" and not byte_fallback:
        pytest.skip("refused, see below")
    pieces = vocabulary(TIES, kind=kind, vocab_size=283, byte_fallback=byte_fallback)
    head = [*SPECIALS, *BYTES] if byte_fallback else list(SPECIALS)
    assert pieces[: len(head)] == head
    assert len(pieces) <= 283
    assert len(set(pieces)) == len(pieces)


def test_the_most_frequent_words_and_characters_come_first():
    lines = ["b a b c", "c b a b"]
    settings = {"byte_fallback": False, "vocab_size": 6}
    assert vocabulary(lines, kind="word", **settings)[4:] == ["▁b", "▁a"]
    assert vocabulary(lines, kind="character", **settings)[4:] == ["▁", "b"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_every_character_of_the_text_is_known_without_byte_fallback(kind):
    rare = "".join(chr(0x4E00 + i) for i in range(37))
    lines = ["common words " * 97, rare]
    config = TokenizerConfig(kind=kind, vocab_size=61, byte_fallback=False)
    assert 1 not in train_tokenizer(lines, config).encode(rare)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_rare_characters_are_left_to_the_bytes(kind):
    lines = ["common words " * 997, "☃"]
    assert 1 / sum(map(len, lines)) < 1 - CHARACTER_COVERAGE
    pieces = vocabulary(lines, kind=kind, vocab_size=283)
    assert "w" in pieces
    assert not any("☃" in piece for piece in pieces)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 260}, "is too small for 4 special tokens and 256 bytes .*; set it to at least 261"),
        ({"vocab_size": 4, "byte_fallback": False}, "too small for 4 special tokens; set it to at least 5"),
        ({"vocab_size": 259, "kind": "byte"}, "set it to at least 260"),
        ({"kind": "byte", "byte_fallback": False}, "set tokenizer.byte_fallback = true"),
        (
            {"vocab_size": 7, "byte_fallback": False},
            "has 4 distinct characters, .* has room for 3; set it to at least 8",
        ),
        ({"vocab_size": 7, "byte_fallback": False, "kind": "unigram"}, "set it to at least 8"),
    ],
)
def test_a_vocabulary_that_is_too_small_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        train_tokenizer(["abc"], TokenizerConfig(**settings))


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "unigram", "wordpiece"])
@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_training_on_nothing_is_refused(kind, lines):
    with pytest.raises(InputError, match="the training text of the tokenizer is empty"):
        train_tokenizer(lines, TokenizerConfig(kind=kind))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_a_word_of_many_characters_does_not_stop_training(kind):
    lines = ["ab" * 50_000, "\0" * 50_000, "the cat"]
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind=kind, vocab_size=293))
    assert tokenizer.decode(tokenizer.encode("abab\0cat")) == "abab\0cat"


def test_lines_are_read_once():
    lines = iter(["the cat", "the mat"])
    train_tokenizer(lines, TokenizerConfig(vocab_size=283))
    assert list(lines) == []


def test_a_tokenizer_forgets_what_belongs_to_a_run():
    config = TokenizerConfig(vocab_size=283, dropout=0.1, path="elsewhere")
    once = train_tokenizer(["the cat"], config)
    assert once.config == TokenizerConfig(vocab_size=283)
    assert once.digest == train_tokenizer(["the cat"], TokenizerConfig(vocab_size=283)).digest


def test_a_joint_pair_learns_from_both_languages():
    pair = train_pair(iter(["the cat"]), iter(["die Katze"]), TokenizerConfig(kind="word", byte_fallback=False))
    assert pair.joint
    assert 1 not in pair.source.encode("the Katze")


def test_a_separate_pair_keeps_its_languages_apart():
    config = TokenizerConfig(kind="word", byte_fallback=False, joint=False)
    pair = train_pair(iter(["the cat"]), iter(["die Katze"]), config)
    assert not pair.joint
    assert 1 not in pair.source.encode("the cat") + pair.target.encode("die Katze")
    assert pair.source.encode("Katze") == pair.target.encode("cat") == [1]
