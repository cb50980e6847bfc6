"""The lexical table: IBM Model 1 as plain loops compute it, and dictionaries that are found again."""

from collections import defaultdict

import numpy as np
import pytest

from heedful.data import lexical_table as module
from heedful.data.lexical_table import PASSES, lexical_table
from heedful.data.stores import PairStore
from heedful.text.pipeline import EOS

VOCABULARY = 40
NOTHING = np.zeros(0, int)


def write_store(folder, seed, pairs=60):
    """Write pairs of rows whose i-th target token translates the i-th source token of another order, s to 43 - s."""
    rng = np.random.default_rng(seed)
    sources = [rng.integers(4, VOCABULARY, rng.integers(1, 9)).tolist() for _ in range(pairs)]
    rows = [([*row, EOS], [*(43 - token for token in rng.permutation(row).tolist()), EOS]) for row in sources]
    return PairStore.write(folder, rows, VOCABULARY)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return [write_store(folder / str(seed), seed) for seed in range(2)]


def plain_table(stores):
    """Count as `lexical_table` does, pair by pair and token by token."""
    pairs = [
        (store.source(i)[:-1].tolist(), store.target(i)[:-1].tolist()) for store in stores for i in range(len(store))
    ]
    frequency = np.bincount([t for _, target in pairs for t in target], minlength=VOCABULARY)
    unaligned = frequency / frequency.sum()
    counts: dict[tuple[int, int], float] = {}
    probabilities, unaligned_now = defaultdict(lambda: 1.0), np.zeros(VOCABULARY)
    for _ in range(PASSES):
        counts = defaultdict(float)
        for source, target in pairs:
            for t in target:
                total = sum(probabilities[s, t] for s in source) + unaligned_now[t]
                for s in source:
                    counts[s, t] += probabilities[s, t] / total
        totals = defaultdict(float)
        for (s, _), count in counts.items():
            totals[s] += count
        probabilities = {(s, t): count / totals[s] for (s, t), count in counts.items()}
        unaligned_now = unaligned
    return counts


@pytest.mark.parametrize("chunk", [module.CHUNK, 50])
def test_the_table_is_that_of_plain_loops_in_chunks_of_any_size(stores, chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    table = lexical_table(stores, VOCABULARY, VOCABULARY, VOCABULARY, NOTHING)
    counts = plain_table(stores)
    for source, row in enumerate(table):
        present = {t for s, t in counts if s == source}
        assert set(row[row >= 0].tolist()) == present
        values = [counts[source, t] for t in row[row >= 0].tolist()]
        assert values == pytest.approx(sorted(values, reverse=True), rel=1e-9)


def test_a_dictionary_is_found_from_pairs_in_another_order(stores):
    table = lexical_table(stores, VOCABULARY, VOCABULARY, 1, NOTHING)
    assert sum(row[0] == 43 - source for source, row in enumerate(table)) >= 34  # of 36
    assert (table[:4] == -1).all()


def test_tokens_that_are_left_out_make_room_for_others(stores):
    left_out = np.arange(20, VOCABULARY)
    table = lexical_table(stores, VOCABULARY, VOCABULARY, 5, left_out)
    assert not np.isin(table, left_out).any()
    assert (table[4:] >= 0).all()


def test_of_very_many_pairs_evenly_spaced_ones_are_read(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_PAIRS", 60)
    rows = [(store.source(i).tolist(), store.target(i).tolist()) for store in stores for i in range(0, len(store), 2)]
    half = PairStore.write(tmp_path / "half", rows, VOCABULARY)
    expected = lexical_table([half], VOCABULARY, VOCABULARY, 3, NOTHING)
    assert (lexical_table(stores, VOCABULARY, VOCABULARY, 3, NOTHING) == expected).all()
