from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import MaskingConfig
from heedful.tasks.masked_lm import mask_tokens

VOCAB, FIRST = 307, 11
MASKING = MaskingConfig()
WORDS = MaskingConfig(whole_words=True)


def batch(rng: np.random.Generator, rows: int, size: int) -> np.ndarray:
    """Sequences <bos> A <eos> B <eos> of different lengths, padded."""
    ids = rng.integers(5, VOCAB, (rows, size))
    ids[:, 0], ids[:, size // 3] = 2, 3
    for row, length in enumerate(rng.integers(size // 2, size + 1, rows)):
        ids[row, length - 1] = 3
        ids[row, length:] = 0
    return ids


def words_of(ids: np.ndarray) -> np.ndarray:
    """Words of one to three tokens; special tokens are words by themselves."""
    return np.cumsum((ids % 3 == 0) | (ids <= 4), axis=1)


def keys(rows: int, epoch: int = 5) -> list[tuple[int, int, int]]:
    return [(3, epoch, number) for number in range(rows)]


@pytest.mark.parametrize("rate", [0.15, 0.4, 0.01])
def test_each_sequence_has_its_share_of_chosen_tokens_and_none_is_special(rate):
    ids = batch(np.random.default_rng(1), 101, 97)
    inputs, chosen = mask_tokens(ids, None, replace(MASKING, rate=rate), VOCAB, FIRST, keys(101))
    real = (ids > 4).sum(axis=1)
    assert chosen.sum(axis=1).tolist() == [max(1, round(rate * int(count))) for count in real]
    assert not chosen[ids <= 4].any()
    assert (inputs == ids)[~chosen].all()
    assert inputs.dtype == ids.dtype


def test_tokens_are_chosen_evenly_and_become_what_the_settings_say():
    ids = np.full((1009, 101), 7)
    inputs, chosen = mask_tokens(ids, None, MASKING, VOCAB, FIRST, keys(1009))
    count = chosen.sum()
    assert count == 1009 * 15
    assert np.abs(chosen.mean(axis=0) - 15 / 101).max() < 0.05  # 4.4 standard deviations
    shown = inputs[chosen]
    for expected, share in ((0.8, shown == 4), (0.1, shown >= FIRST), (0.1, shown == 7)):
        assert abs(share.mean() - expected) < 0.014  # 4.3 standard deviations of 0.8
    drawn = shown[shown >= FIRST]
    assert drawn.max() < VOCAB
    assert len(set(drawn.tolist())) > 0.99 * (VOCAB - FIRST) * (1 - np.exp(-len(drawn) / (VOCAB - FIRST)))
    assert abs(drawn.mean() - (FIRST + VOCAB - 1) / 2) < 10  # 4.6 standard deviations


@pytest.mark.parametrize(
    ("mask", "random", "allowed"), [(1.0, 0.0, {4}), (0.0, 0.0, {7}), (0.0, 1.0, set(range(FIRST, VOCAB)))]
)
def test_the_shares_can_be_all_or_nothing(mask, random, allowed):
    ids = np.full((23, 101), 7)
    masking = replace(MASKING, mask=mask, random=random)
    inputs, chosen = mask_tokens(ids, None, masking, VOCAB, FIRST, keys(23))
    assert set(inputs[chosen].tolist()) <= allowed


@pytest.mark.parametrize("masking", [MASKING, WORDS], ids=["pieces", "words"])
def test_masks_do_not_depend_on_the_batch(masking):
    ids = batch(np.random.default_rng(2), 23, 61)
    whole = mask_tokens(ids, words_of(ids), masking, VOCAB, FIRST, keys(23))
    order = np.random.default_rng(3).permutation(23)
    wider = np.pad(ids[order], ((0, 0), (0, 7)))
    moved = mask_tokens(wider, words_of(wider), masking, VOCAB, FIRST, [keys(23)[row] for row in order])
    for row in range(23):
        alone = mask_tokens(ids[row : row + 1], words_of(ids)[row : row + 1], masking, VOCAB, FIRST, [keys(23)[row]])
        place = int(np.flatnonzero(order == row)[0])
        for one, other, own in zip(whole, moved, alone, strict=True):
            assert one[row].tolist() == own[0].tolist() == other[place, :61].tolist()


def test_masks_change_with_seed_epoch_and_sequence():
    ids = np.repeat(np.arange(5, 106)[None], 4, axis=0)
    _, chosen = mask_tokens(ids, None, MASKING, VOCAB, FIRST, [(3, 5, 7), (4, 5, 7), (3, 6, 7), (3, 5, 8)])
    assert len({row.tobytes() for row in chosen}) == 4
    again = mask_tokens(ids, None, MASKING, VOCAB, FIRST, [(3, 5, 7)] * 4)[1]
    assert (again == chosen[0]).all()


@given(st.lists(st.integers(1, 7), min_size=1, max_size=31), st.floats(0.01, 1), st.integers(0, 2**40))
def test_whole_words_are_chosen_until_the_budget_is_reached_and_no_further(sizes, rate, number):
    words = np.repeat(np.arange(len(sizes)), sizes)[None]
    ids = np.full(words.shape, 13)
    masking = replace(WORDS, rate=rate)
    _, chosen = mask_tokens(ids, words, masking, VOCAB, FIRST, [(1, 0, number)])
    taken = [bool(chosen[0, words[0] == word].all()) for word in range(len(sizes))]
    assert taken == [bool(chosen[0, words[0] == word].any()) for word in range(len(sizes))]
    budget = max(1, round(rate * sum(sizes)))
    total = sum(size for size, yes in zip(sizes, taken, strict=True) if yes)
    assert budget <= total
    assert total - max(size for size, yes in zip(sizes, taken, strict=True) if yes) < budget


def test_pieces_are_chosen_apart_unless_whole_words_are_asked_for():
    words = np.repeat(np.arange(13), 7)[None]
    ids = np.full(words.shape, 13)
    _, chosen = mask_tokens(ids, words, MASKING, VOCAB, FIRST, keys(1))
    assert len(set(words[chosen].tolist())) > 2
    _, chosen = mask_tokens(ids, words, WORDS, VOCAB, FIRST, keys(1))
    assert len(set(words[chosen].tolist())) == 2


def test_a_sequence_without_text_has_nothing_chosen():
    ids = np.array([[2, 3, 3, 0, 0], [2, 17, 3, 1, 3]])
    inputs, chosen = mask_tokens(ids, None, MASKING, VOCAB, FIRST, keys(2))
    assert chosen.tolist() == [[False] * 5, [False, True, False, False, False]]
    assert inputs[0].tolist() == ids[0].tolist()


def test_what_cannot_be_done_is_refused():
    ids = np.full((1, 7), 13)
    with pytest.raises(ValueError, match="no token ids from 307 up"):
        mask_tokens(ids, None, MASKING, VOCAB, VOCAB, keys(1))
    with pytest.raises(ValueError, match="whole_words needs"):
        mask_tokens(ids, None, WORDS, VOCAB, FIRST, keys(1))
