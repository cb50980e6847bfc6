import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, count, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.schema import TokenizerConfig
from heedful.data import batches as batches_module
from heedful.data.batches import BatchPlan, assemble, encode_with_bpe_dropout
from heedful.data.stores import PairStore
from heedful.text.sequences import pad
from heedful.text.tokenizer import EOS, PAD, UNK
from heedful.text.training import train_tokenizer


def lengths_like_a_corpus(size: int, seed: int = 3) -> np.ndarray:
    """Tokens of source and target as in short captions: log-normal, and the two sides go together."""
    rng = np.random.default_rng(seed)
    source = rng.lognormal(2.7, 0.35, size)
    sides = np.stack([source, source * rng.lognormal(0.02, 0.15, size)], axis=1)
    return np.maximum(2, sides.round()).astype(np.int32)


def sequence(plan: BatchPlan, epochs: int) -> list[list[int]]:
    return [batch.tolist() for epoch in range(epochs) for batch in plan.epoch(epoch)]


def going_on(plan: BatchPlan, epoch: int, number: int) -> Iterator[tuple[list[int], tuple[int, int]]]:
    """The batches from a position on, each with the position after it."""
    for later in count(epoch):
        batches = plan.epoch(later)
        for done, batch in enumerate(batches[number:], start=number + 1):
            yield batch.tolist(), (later, done)
        number = 0


corpora = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, 61), st.integers(1, 61)), min_size=1, max_size=101),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(corpora, st.integers(1, 307), st.integers(0, 2**64), st.integers(0, 2**40))
def test_every_epoch_shows_each_pair_as_often_as_its_weight_says(corpora, tokens, seed, epoch):
    lengths = [np.array(pairs, np.int32) for pairs, _ in corpora]
    plan = BatchPlan(lengths, [weight for _, weight in corpora], tokens, seed)
    shown = Counter(chain.from_iterable(batch.tolist() for batch in plan.epoch(epoch)))
    expected = [weight for pairs, weight in corpora for _ in pairs]
    assert [shown[pair] for pair in range(len(expected))] == expected
    assert shown.total() == sum(expected)


@settings(deadline=None)
@given(corpora, st.integers(1, 307), st.integers(0, 2**64))
def test_batches_keep_to_the_budget_and_only_a_long_pair_breaks_it_alone(corpora, tokens, seed):
    lengths = np.concatenate([np.array(pairs, np.int32) for pairs, _ in corpora])
    plan = BatchPlan([lengths], [1.0], tokens, seed)
    for batch in plan.epoch(0):
        assert batch.dtype == np.int64
        assert len(batch) > 0
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= tokens


def test_a_budget_is_used_to_its_last_token():
    plan = BatchPlan([np.full((30, 2), 7, np.int32)], [1.0], 5 * 7, seed=1)
    assert [len(batch) for batch in plan.epoch(0)] == [5] * 6


@pytest.mark.parametrize("part", [0.25, 0.3, 0.5, 0.9, 0.001])
def test_a_fraction_of_a_corpus_goes_round(part):
    size = 997
    plan = BatchPlan([lengths_like_a_corpus(size)], [2 + part], 409, seed=5)
    share = max(1, round(part * size))
    once_more = Counter()
    for epoch in range(7):
        shown = Counter(np.concatenate(plan.epoch(epoch)).tolist())
        assert shown.total() == 2 * size + share
        assert set(shown.values()) <= {2, 3}
        once_more.update(pair for pair, times in shown.items() if times == 3)
    assert {once_more[pair] for pair in range(size)} <= {7 * share // size, 7 * share // size + 1}


def test_the_fractions_of_two_corpora_are_drawn_apart():
    lengths = lengths_like_a_corpus(499)
    plan = BatchPlan([lengths, lengths], [0.5, 0.5], 409, seed=5)
    shown = np.sort(np.concatenate(plan.epoch(0)))
    assert sorted(shown[shown < 499]) != sorted(shown[shown >= 499] - 499)


def test_no_epoch_is_empty():
    assert len(BatchPlan([lengths_like_a_corpus(3)], [0.01], 101, seed=1).epoch(4)) == 1


def test_the_order_is_a_pure_function_of_seed_and_epoch():
    lengths = [lengths_like_a_corpus(1009), lengths_like_a_corpus(307, seed=7)]
    plan = BatchPlan(lengths, [1.0, 2.5], 1021, seed=11)
    forwards = [sequence(plan, 1), *([batch.tolist() for batch in plan.epoch(epoch)] for epoch in (1, 2))]
    other = BatchPlan(lengths, [1.0, 2.5], 1021, seed=11)
    assert [[batch.tolist() for batch in other.epoch(epoch)] for epoch in (2, 1, 0)] == forwards[::-1]
    assert forwards[0] != forwards[1]
    reseeded = BatchPlan(lengths, [1.0, 2.5], 1021, seed=12)
    assert [batch.tolist() for batch in reseeded.epoch(0)] != forwards[0]


def test_the_order_is_the_same_on_every_machine():
    plan = BatchPlan([lengths_in_integers(997), lengths_in_integers(211)], [1.0, 1.5], 1013, seed=7)
    content = repr(sequence(plan, 2)).encode()
    assert hashlib.sha256(content).hexdigest() == "5270c4d50ec17e4fd8b9a1a2f581100aa5d1a90d7513eb73761a4dc735ce6c94"


def lengths_in_integers(size: int) -> np.ndarray:
    row = np.arange(size)
    return np.stack([3 + row * row % 43, 2 + row * 7 % 41], axis=1).astype(np.int32)


def test_the_order_does_not_depend_on_hash_seeds_or_threads():
    script = (
        "import numpy as np; from heedful.data.batches import BatchPlan;"
        "lengths = (np.arange(2018).reshape(-1, 2) * 7 % 41 + 2).astype(np.int32);"
        "print([batch.tolist() for batch in BatchPlan([lengths], [1.3], 509, 3).epoch(2)])"
    )
    settings = ({"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "3"})
    outputs = {
        subprocess.run([sys.executable, "-c", script], env=os.environ | setting, capture_output=True, check=True).stdout
        for setting in settings
    }
    assert len(outputs) == 1


def test_three_hundred_interrupted_runs_see_the_same_sequence():
    """Runs stop after any batch, up to five times, in and between epochs, and go on from (epoch, batch) alone."""
    rng = random.Random(13)
    for _ in range(300):
        sizes = [rng.randint(1, 97) for _ in range(rng.randint(1, 3))]
        lengths = [lengths_like_a_corpus(size, seed=size) for size in sizes]
        arguments = (
            lengths,
            [rng.choice([0.4, 1.0, 1.7, 2.0]) for _ in sizes],
            rng.randint(17, 211),
            rng.randrange(2**32),
        )
        whole = sequence(BatchPlan(*arguments), epochs=3)
        stops = sorted(rng.sample(range(len(whole) + 1), min(rng.randint(1, 5), len(whole))))
        seen, position = [], (0, 0)
        for stop in [*stops, len(whole)]:
            run = list(islice(going_on(BatchPlan(*arguments), *position), stop - len(seen)))
            seen += [batch for batch, _ in run]
            position = run[-1][1] if run else position
        assert seen == whole


def test_little_is_padding():
    lengths = lengths_like_a_corpus(29_009)
    batches = BatchPlan([lengths], [1.0], 4096, seed=1).epoch(0)
    cells = sum(len(batch) * int(lengths[batch].max(axis=0).sum()) for batch in batches)
    assert lengths.sum() / cells >= 0.94
    assert sum(len(batch) * lengths[batch].max() for batch in batches) <= 4096 * len(batches)
    fill = [len(batch) * lengths[batch].max() / 4096 for batch in batches]
    assert np.mean(np.array(fill) > 0.95) > 0.95


def test_epochs_make_different_batches_of_mixed_lengths():
    lengths = lengths_like_a_corpus(10_007)
    plan = BatchPlan([lengths], [1.0], 2048, seed=1)
    first, second = plan.epoch(0), plan.epoch(1)
    partners = np.empty((2, len(lengths)), int)
    for side, batches in enumerate((first, second)):
        for number, batch in enumerate(batches):
            partners[side, batch] = number
    pairs = np.random.default_rng(1).integers(0, len(lengths), (200_003, 2))
    together = [side[pairs[:, 0]] == side[pairs[:, 1]] for side in partners]
    assert (together[0] & together[1]).sum() < 0.5 * together[0].sum()
    longest = [lengths[batch].max() for batch in first]
    assert abs(np.corrcoef(np.arange(len(first)), longest)[0, 1]) < 0.3


def test_blocks_hold_different_pairs_in_every_epoch(monkeypatch):
    monkeypatch.setattr(batches_module, "BLOCK", 101)
    lengths = lengths_like_a_corpus(997)
    plan = BatchPlan([lengths], [1.0], 211, seed=3)
    first, second = np.concatenate(plan.epoch(0)), np.concatenate(plan.epoch(1))
    assert sorted(first) == sorted(second) == list(range(997))
    assert len(set(first[:99]) & set(second[:99])) < 40


@pytest.fixture
def stores(tmp_path):
    """Three stores of 5, 13 and 7 pairs; ids of the first take four bytes."""
    rng = random.Random(3)

    def row() -> list[int]:
        return [*(rng.randrange(4, 97) for _ in range(rng.randint(0, 11))), 3]

    return [
        PairStore.write(tmp_path / str(size), [(row(), row()) for _ in range(size)], vocab_size)
        for size, vocab_size in ((5, 70_001), (13, 97), (7, 97))
    ]


def test_a_batch_is_the_rows_of_its_pairs_with_padding_at_the_end(stores):
    ids = np.array([24, 0, 4, 5, 17, 18, 5])
    source, target = assemble(stores, ids)
    rows = [
        (stores[2], 6),
        (stores[0], 0),
        (stores[0], 4),
        (stores[1], 0),
        (stores[1], 12),
        (stores[2], 0),
        (stores[1], 0),
    ]
    for batch, side in ((source, "source"), (target, "target")):
        expected = [getattr(store, side)(row).tolist() for store, row in rows]
        width = max(map(len, expected))
        assert batch.dtype == np.int64
        assert batch.tolist() == [row + [0] * (width - len(row)) for row in expected]


def test_every_pair_can_be_assembled_alone(stores):
    rows = [(store, row) for store in stores for row in range(len(store))]
    for pair, (store, row) in enumerate(rows):
        source, target = assemble(stores, np.array([pair]))
        assert source.tolist() == [store.source(row).tolist()]
        assert target.tolist() == [store.target(row).tolist()]


def test_a_plan_over_stores_covers_them(stores):
    plan = BatchPlan([store.lengths for store in stores], [1.0] * 3, 53, seed=1)
    tokens = sum(int((side > 0).sum()) for batch in plan.epoch(0) for side in assemble(stores, batch))
    assert tokens == sum(int(store.lengths.sum()) for store in stores)


def test_a_row_with_an_unknown_token_stays_as_it_is_under_bpe_dropout():
    tokenizer = train_tokenizer(["the cat sat"] * 5, TokenizerConfig(vocab_size=60, byte_fallback=False))
    known, unknown = ([*tokenizer.encode(text), EOS] for text in ("the cat sat", "the ☃ cat"))
    assert UNK in unknown
    rows = encode_with_bpe_dropout(pad([known, unknown])[0], tokenizer, 0.9, random.Random(1))
    found = [row[row != PAD].tolist() for row in rows]
    assert (found[0] != known, found[1]) == (True, unknown)
    assert tokenizer.decode(found[0][:-1]) == "the cat sat"


def test_a_row_that_bpe_dropout_would_make_too_long_stays_as_it_is():
    tokenizer = train_tokenizer(["the cat sat"] * 5, TokenizerConfig(vocab_size=311))
    rows = [[*tokenizer.encode(text), EOS] for text in ("the cat sat", "the")]
    found = encode_with_bpe_dropout(pad(rows)[0], tokenizer, 1.0, random.Random(1), 7)
    assert [row[row != PAD].tolist() for row in found] == [
        rows[0],
        [*tokenizer.encode_with_dropout("the", 1.0, random.Random(1)), EOS],
    ]
