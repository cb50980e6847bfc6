import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.tokenizer import WINDOW, merge_with_dropout
from heedful.text.training import train_tokenizer

LINES = ["the cat sat on the mat", "the cats sat there", "die Katze saß auf der Matte", "a  b ☃"] * 3
BPE = train_tokenizer(LINES, TokenizerConfig(vocab_size=311))
texts = st.text("the catsomdi Kzß☃\n", max_size=41) | st.text(max_size=11)


@given(texts, st.floats(0, 1), st.integers())
def test_dropout_never_changes_the_text(text, rate, seed):
    assert BPE.decode(BPE.encode_with_dropout(text, rate, random.Random(seed))) == text


@given(texts)
def test_without_dropout_it_is_encoding(text):
    assert BPE.encode_with_dropout(text, 0.0, random.Random(1)) == BPE.encode(text)
    assert BPE.encode_with_dropout(text, 1e-12, random.Random(1)) == BPE.encode(text)


def test_full_dropout_leaves_characters_and_bytes():
    ids = BPE.encode_with_dropout("the ☃ é", 1.0, random.Random(1))
    assert BPE.pieces(ids) == ["▁", "t", "h", "e", "▁", "☃", "▁", "<0xC3>", "<0xA9>"]


def test_without_byte_fallback_the_unknown_stays_unknown():
    tokenizer = train_tokenizer(LINES, TokenizerConfig(vocab_size=61, byte_fallback=False))
    assert tokenizer.encode_with_dropout("the é", 0.5, random.Random(1))[-1] == 1


def test_the_same_state_gives_the_same_spelling():
    text = " ".join(LINES)
    first, second, other = (BPE.encode_with_dropout(text, 0.3, random.Random(seed)) for seed in (7, 7, 11))
    assert first == second != other


def test_each_merge_is_overlooked_at_the_given_rate():
    rng = random.Random(1)
    merges = {(5, 7): (0, 11)}
    merged = sum(merge_with_dropout([5, 7], merges, 0.3, rng) == [11] for _ in range(5000))
    assert merged / 5000 == pytest.approx(0.7, abs=0.03)


def test_a_chance_comes_again_after_each_merge():
    """(a b) c d may lose a b at first and merge it after c d: Provilkov et al. draw anew at every step."""
    rng = random.Random(1)
    merges = {(5, 7): (0, 11), (2, 3): (1, 13)}
    both = sum(merge_with_dropout([5, 7, 2, 3], merges, 0.5, rng) == [11, 13] for _ in range(5000))
    # first step: a b with 1/2, else c d with 1/4, else stop; then the other one with 1/2
    assert both / 5000 == pytest.approx((1 / 2 + 1 / 4) / 2, abs=0.03)


def test_earlier_merges_go_first():
    merges = {(5, 7): (1, 11), (7, 2): (0, 13), (5, 13): (2, 17)}
    assert merge_with_dropout([5, 7, 2], merges, 0.0, random.Random(1)) == [17]
    assert merge_with_dropout([5, 7, 5, 7], merges, 0.0, random.Random(1)) == [11, 11]


def test_a_long_word_takes_no_squared_time():
    merges = {(5, 5): (0, 7)}
    assert merge_with_dropout([5] * (41 * 2 * WINDOW), merges, 0.0, random.Random(1)) == [7] * (41 * WINDOW)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_that_is_no_probability_is_refused(rate):
    with pytest.raises(InputError, match="must be a probability from 0 to 1, not"):
        BPE.encode_with_dropout("the cat", rate, random.Random(1))


@pytest.mark.parametrize("kind", ["word", "character", "byte", "unigram", "wordpiece"])
def test_other_kinds_have_no_merges_to_drop(kind):
    tokenizer = train_tokenizer(LINES, TokenizerConfig(kind=kind, vocab_size=311))
    with pytest.raises(InputError, match=f'needs a tokenizer of kind "bpe", but this one is "{kind}"'):
        tokenizer.encode_with_dropout("the cat", 0.0, random.Random(1))
