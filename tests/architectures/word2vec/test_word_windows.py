import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.architectures.word2vec.data import (
    NoiseDistribution,
    WordWindows,
    alias_table,
    blocks,
    count_words,
    draw_windows,
    keep_probabilities,
    pairs,
)
from heedful.text.tokenizer import EOS

ALL = np.ones(1000)
FIRST = EOS + 1  # the first word


def text_of(*documents):
    """Documents as a stream of ids."""
    return np.array([i for document in documents for i in [*document, EOS]], np.uint16)


def windows_of(ids, keep=None, window=5, key=(1, 0), places=None):
    keep = ALL.copy() if keep is None else keep
    keep[: EOS + 1] = 0
    return draw_windows(ids, np.arange(len(ids)) if places is None else places, 10**6, keep, window, key)


def word_pairs(windows):
    return [(windows.words[i], windows.words[j]) for i, j in zip(*pairs(windows), strict=True)]


def test_the_pairs_of_four_words_with_window_1_are_the_six_neighbours():
    wo, ai, chi, li = range(4, 8)
    assert word_pairs(windows_of(text_of([wo, ai, chi, li]), window=1)) == [
        (wo, ai),
        (ai, wo),
        (ai, chi),
        (chi, ai),
        (chi, li),
        (li, chi),
    ]


documents = st.lists(st.lists(st.integers(FIRST, 30), max_size=23), min_size=1, max_size=7)


@settings(max_examples=60, deadline=None)
@given(documents, st.integers(1, 7), st.integers(0, 99))
def test_windows_never_cross_documents(parts, window, epoch):
    ids = text_of(*parts)
    windows = windows_of(ids, window=window, key=(3, epoch))
    document = np.cumsum(ids == EOS)[ids != EOS]
    centres, contexts = pairs(windows)
    assert (document[centres] == document[contexts]).all()
    assert (centres != contexts).all()
    assert (np.abs(centres - contexts) <= window).all()
    np.testing.assert_array_equal(np.bincount(centres, minlength=len(windows.words)), windows.sizes)


@settings(max_examples=30, deadline=None)
@given(documents, st.integers(1, 40))
def test_windows_depend_on_the_place_and_not_on_the_batch(parts, cut):
    ids, keep = text_of([5], *parts), np.full(1000, 0.6)
    places = np.arange(len(ids))
    whole = windows_of(ids, keep, window=1)
    first, second = (
        windows_of(ids[:cut], keep, 1, places=places[:cut]),
        windows_of(ids[cut:], keep, 1, places=places[cut:]),
    )
    np.testing.assert_array_equal(np.concatenate([first.words, second.words]), whole.words)
    seam = len(first.words)  # the two words beside the cut may lose a neighbour, and no other word
    for side in ("before", "after"):
        both = np.concatenate([getattr(first, side), getattr(second, side)])
        away = np.abs(np.arange(len(both)) - seam + 0.5) > 1
        np.testing.assert_array_equal(both[away], getattr(whole, side)[away])


@pytest.mark.parametrize("second", [2, 7], ids=["that follows", "from elsewhere"])
def test_a_window_ends_with_its_piece_of_text_whatever_comes_behind_it_in_the_batch(second):
    ids = text_of([4, 5, 6, 7])
    windows = draw_windows(ids[:4], np.array([0, 1, second, second + 1]), 2, ALL, 1, (1, 0))
    assert word_pairs(windows) == [(4, 5), (5, 4), (6, 7), (7, 6)]


def test_windows_have_every_size_equally_often():
    ids = np.full(40_001, 9, np.uint16)
    windows = windows_of(ids, window=5)
    sizes = np.bincount(windows.before[10:-10], minlength=6)[1:] / (len(ids) - 20)
    np.testing.assert_allclose(sizes, 0.2, atol=0.01)


def test_frequent_words_are_thinned_out_as_often_as_they_should_be():
    ids = np.full(40_001, 9, np.uint16)
    keep = np.full(10, 0.3)
    assert len(windows_of(ids, keep).words) / len(ids) == pytest.approx(0.3, abs=0.01)
    assert len(windows_of(ids, np.ones(10)).words) == len(ids)


def test_an_epoch_draws_other_windows_than_the_one_before():
    ids = np.full(101, 9, np.uint16)
    assert (windows_of(ids, key=(1, 0)).before != windows_of(ids, key=(1, 1)).before).any()
    np.testing.assert_array_equal(windows_of(ids, key=(1, 1)).before, windows_of(ids, key=(1, 1)).before)


def test_words_are_counted_and_special_tokens_are_none():
    np.testing.assert_array_equal(count_words(text_of([4, 5, 4], [4]), 7), [0, 0, 0, 0, 3, 1, 0])


def test_the_probability_to_be_kept_is_that_of_the_authors_program():
    counts = np.array([0, 9000, 900, 100])
    share = counts[1:] / 10_000
    want = np.minimum((np.sqrt(share / 0.01) + 1) * 0.01 / share, 1)
    np.testing.assert_allclose(keep_probabilities(counts, 0.01), [0, *want])
    np.testing.assert_array_equal(keep_probabilities(counts, 0.0), [0, 1, 1, 1])


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=37).filter(any))
def test_an_alias_table_holds_its_distribution(weights):
    probabilities = np.array(weights) / sum(weights)
    threshold, alias = alias_table(probabilities.copy())
    held = threshold.copy()
    np.add.at(held, alias, 1 - threshold)
    np.testing.assert_allclose(held / len(weights), probabilities, atol=1e-12)


def test_negative_samples_follow_the_counts_to_the_power_three_quarters():
    counts = np.array([0, 0, 10_000, 100, 1])
    drawn = NoiseDistribution(counts, 0.75).draw(np.random.default_rng(7).integers(0, 2**64, 100_003, np.uint64))
    np.testing.assert_allclose(
        np.bincount(drawn, minlength=5) / len(drawn), counts**0.75 / (counts**0.75).sum(), atol=0.003
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(FIRST, 30), min_size=1, max_size=41), st.integers(1, 5), st.integers(1, 11))
def test_blocks_hold_all_pairs_and_no_other(words, window, length):
    windows = windows_of(text_of(words), window=window)
    cut = blocks(windows, window, length)
    block, context, centre = np.nonzero(cut.in_window)
    found = zip(cut.words[block, centre], cut.around[block, context], strict=True)
    assert sorted(found) == sorted(word_pairs(windows))
    assert cut.sizes.sum() == windows.sizes.sum() == cut.in_window.sum()
    np.testing.assert_array_equal(cut.words.ravel()[: len(words)], words)


def test_a_batch_without_a_kept_word_has_a_block_without_context():
    nothing = WordWindows(*(np.zeros(0, np.int64) for _ in range(3)))
    assert blocks(nothing, 5, 32).words.shape == (1, 32)
    assert not blocks(nothing, 5, 32).sizes.any()
    assert pairs(nothing)[0].shape == (0,)
