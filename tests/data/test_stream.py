import tracemalloc
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.stream import TokenStream, WindowPlan, windows

documents_of_ids = st.lists(st.lists(st.integers(4, 70_000), max_size=23), min_size=1, max_size=7)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    def make(documents: list[list[int]]) -> TokenStream:
        folder = tmp_path_factory.mktemp("stream") / "stream"
        return TokenStream.write(folder, ((ids, 2 * len(ids)) for ids in documents), vocab_size=70_001)

    return make


@pytest.fixture
def long_stream(make):
    return make([[4 + (7 * i + j) % 997 for j in range(i % 41)] for i in range(211)])


def predicted(stream: TokenStream, plan: WindowPlan, batches: list[np.ndarray]) -> Counter[int]:
    """How often each place of a stream is a target."""
    targets = np.concatenate(batches)[:, None] + 1 + np.arange(plan.length)
    return Counter(targets[targets < len(stream)].tolist())


@settings(max_examples=23, deadline=None)
@given(documents_of_ids)
def test_documents_come_back_with_their_ends(make, documents):
    stream = make(documents)
    assert stream.ids.tolist() == [i for ids in documents for i in [*ids, 3]]
    bounds = stream.offsets.tolist()
    assert [stream.ids[begin : end - 1].tolist() for begin, end in pairwise(bounds)] == documents
    assert len(stream) == bounds[-1]
    assert stream.bytes == 2 * sum(map(len, documents))


@settings(max_examples=41, deadline=None)
@given(documents_of_ids, st.integers(1, 61), st.integers(1, 211))
def test_validation_predicts_every_token_once_and_in_order(make, documents, length, tokens):
    stream = make(documents)
    plan = WindowPlan(stream, length, tokens, seed=3)
    targets, inputs = [], []
    for starts in plan.cover():
        assert starts.dtype == np.int64
        assert len(starts) * length <= tokens or len(starts) == 1
        ids, _ = windows(stream, starts, length)
        assert ids.shape == (len(starts), length + 1)
        targets += ids[:, 1:].ravel().tolist()
        inputs += ids[:, :-1].ravel().tolist()
    count = len(stream)
    assert targets[:count] == stream.ids.tolist()
    assert inputs[:count] == [3, *stream.ids.tolist()[:-1]]
    assert set(targets[count:]) <= {0}
    assert len(targets) - count < length


@settings(max_examples=41, deadline=None)
@given(documents_of_ids, st.integers(1, 61), st.integers(0, 2**40))
def test_an_epoch_predicts_no_token_twice_and_loses_less_than_a_window_at_either_end(make, documents, length, epoch):
    stream = make(documents)
    plan = WindowPlan(stream, length, 97, seed=5)
    seen = predicted(stream, plan, plan.epoch(epoch))
    assert set(seen.values()) == {1}
    places = sorted(seen)
    assert places == list(range(places[0], places[-1] + 1))
    assert places[0] < length
    assert len(stream) - 1 - places[-1] < length
    if len(stream) < length:
        assert len(places) == len(stream)


def test_every_token_is_predicted_in_some_epoch(make):
    for size in (17, 29, 31):  # of windows of 17 tokens: one, one with 12 to spare, one with 14 to spare
        stream = make([list(range(4, 4 + size - 1))])
        plan = WindowPlan(stream, 17, 97, seed=5)
        seen = Counter()
        for epoch in range(101):
            seen += predicted(stream, plan, plan.epoch(epoch))
        assert sorted(seen) == list(range(size))


def test_phases_are_uniform(long_stream):
    plan = WindowPlan(long_stream, 7, 97, seed=1)
    phases = Counter(int(np.concatenate(plan.epoch(epoch)).min()) + 1 for epoch in range(1400))
    assert sorted(phases) == list(range(7))
    assert all(abs(count - 200) < 60 for count in phases.values())  # 4.6 standard deviations


def test_an_epoch_is_a_pure_function_of_seed_and_epoch(long_stream):
    plan = WindowPlan(long_stream, 13, 101, seed=11)
    epochs = [[batch.tolist() for batch in plan.epoch(epoch)] for epoch in range(3)]
    again = WindowPlan(long_stream, 13, 101, seed=11)
    assert [[batch.tolist() for batch in again.epoch(epoch)] for epoch in (2, 1, 0)] == epochs[::-1]
    assert epochs[0] != epochs[1]
    assert [batch.tolist() for batch in WindowPlan(long_stream, 13, 101, seed=12).epoch(0)] != epochs[0]
    starts = np.concatenate(plan.epoch(0))
    assert abs(np.corrcoef(np.arange(len(starts)), starts)[0, 1]) < 0.2
    assert {len(batch) for batch in plan.epoch(0)[:-1]} == {101 // 13}


def test_documents_are_numbered_from_their_announcing_end_on(make):
    stream = make([[5, 7], [], [11, 13, 17]])  # 5 7 3 3 11 13 17 3
    ids, documents = windows(stream, np.array([-1, 3, 6]), 4)
    assert ids.tolist() == [[3, 5, 7, 3, 3], [3, 11, 13, 17, 3], [17, 3, 0, 0, 0]]
    assert documents.tolist() == [[0, 0, 0, 1, 2], [2, 2, 2, 2, 3], [2, 3, 4, 4, 4]]
    assert ids.dtype == documents.dtype == np.int64


def test_a_window_does_not_depend_on_its_batch(long_stream):
    starts = WindowPlan(long_stream, 19, 97, seed=3).epoch(0)[1]
    ids, documents = windows(long_stream, starts, 19)
    for row, start in enumerate(starts):
        alone = windows(long_stream, np.array([start]), 19)
        assert (alone[0].tolist(), alone[1].tolist()) == ([ids[row].tolist()], [documents[row].tolist()])


def test_writing_takes_little_memory(tmp_path):
    documents = (([5] * 79, 101) for _ in range(20_011))
    tracemalloc.start()
    try:
        stream = TokenStream.write(tmp_path / "stream", documents, vocab_size=29)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert stream.bytes == 101 * 20_011
    assert peak < 6 << 20  # all ids as Python lists would be 13 MB
