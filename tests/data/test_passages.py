import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.schema import MaskingConfig
from heedful.data.passages import PassagePlan, SentenceStore, read_passages
from heedful.errors import InputError
from timing import plain_python, times_as_long

PAIRS = MaskingConfig()
SINGLES = MaskingConfig(next_sentence=False)
LENGTH, TOKENS = 61, 499

# Every token of these stores has an id of its own, so that a passage tells where it stands.
sizes_of_sentences = st.lists(st.lists(st.integers(1, 37), min_size=1, max_size=11), min_size=2, max_size=7)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    def make(sizes: list[list[int]]) -> SentenceStore:
        folder = tmp_path_factory.mktemp("sentences") / "store"
        ids = iter(range(5, 100_003))
        documents = [[[next(ids) for _ in range(size)] for size in document] for document in sizes]
        return SentenceStore.write(folder, documents, vocab_size=100_003)

    return make


@pytest.fixture(scope="module")
def big_store(make):
    rng = random.Random(7)
    return make([[rng.randint(1, 31) for _ in range(rng.randint(2, 29))] for _ in range(211)])


def sequences(plan: PassagePlan, epoch: int = 0) -> np.ndarray:
    planned = np.concatenate(plan.epoch(epoch))
    return planned[np.argsort(planned["number"])]


def content(plan: PassagePlan, epoch: int) -> list[bytes]:
    return [batch.tobytes() for batch in plan.epoch(epoch)]


def document_of(store: SentenceStore, tokens: np.ndarray) -> np.ndarray:
    return np.searchsorted(store.sentences[store.documents], tokens, side="right") - 1


@given(st.lists(st.lists(st.lists(st.integers(5, 96), max_size=7), max_size=5), max_size=5))
def test_sentences_come_back_and_what_is_empty_takes_no_place(tmp_path_factory, documents):
    filled = [[sentence for sentence in document if sentence] for document in documents]
    filled = [document for document in filled if document]
    folder = tmp_path_factory.mktemp("any") / "store"
    if not filled:
        with pytest.raises(ValueError, match="at least one sentence"):
            SentenceStore.write(folder, documents, vocab_size=97)
        return
    store = SentenceStore.write(folder, documents, vocab_size=97)
    bounds = store.sentences.tolist()
    sentences = [store.ids[begin:end].tolist() for begin, end in pairwise(bounds)]
    places = store.documents.tolist()
    assert [sentences[begin:end] for begin, end in pairwise(places)] == filled
    assert len(store) == len(filled)


@settings(max_examples=41, deadline=None)
@given(sizes_of_sentences, st.integers(5, 53), st.floats(0, 1), st.integers(0, 2**40))
def test_a_pair_is_two_passages_that_follow_each_other_or_of_two_documents(make, sizes, length, short, seed):
    store = make(sizes)
    plan = PassagePlan(store, replace(PAIRS, short=short), length, TOKENS, seed)
    try:
        planned = sequences(plan)
    except InputError:
        assert max(map(sum, sizes)) == 1 or all(size == 1 for document in sizes for size in document)
        return
    first, second = planned["first"], planned["second"]
    size = (first[:, 1] - first[:, 0]) + (second[:, 1] - second[:, 0])
    assert (first[:, 0] < first[:, 1]).all()
    assert (second[:, 0] < second[:, 1]).all()
    assert size.max() <= length - 3
    for span in (first, second):
        assert (document_of(store, span[:, 0]) == document_of(store, span[:, 1] - 1)).all()
    same = document_of(store, first[:, 0]) == document_of(store, second[:, 0])
    assert same.tolist() == planned["is_next"].tolist()
    untrimmed = planned["is_next"] & (size < length - 3)
    assert (first[untrimmed, 1] == second[untrimmed, 0]).all()
    assert (first[planned["is_next"], 1] <= second[planned["is_next"], 0]).all()


@settings(max_examples=23, deadline=None)
@given(sizes_of_sentences, st.integers(4, 53), st.floats(0, 1), st.integers(0, 2**40))
def test_single_passages_hold_every_token_once(make, sizes, length, short, seed):
    store = make(sizes)
    planned = sequences(PassagePlan(store, replace(SINGLES, short=short), length, TOKENS, seed))
    spans = planned["first"]
    assert [i for begin, end in spans for i in range(begin, end)] == list(range(len(store.ids)))
    assert (spans[:, 1] - spans[:, 0]).max() <= length - 2
    assert (document_of(store, spans[:, 0]) == document_of(store, spans[:, 1] - 1)).all()
    assert not planned["is_next"].any()


def test_single_passages_are_as_long_as_can_be(make):
    store = make([[7] * 13, [5, 3]])
    planned = sequences(PassagePlan(store, replace(SINGLES, short=0.0), 31, TOKENS, 1))
    assert planned["first"].tolist() == [[0, 29], [29, 58], [58, 87], [87, 91], [91, 99]]


@pytest.mark.parametrize("sizes", [[7, 11, 5, 3], [23], [1, 2], [97, 97, 97]], ids=str)
@pytest.mark.parametrize("short", [0.0, 0.1, 1.0])
def test_half_of_the_pairs_are_neighbours(make, sizes, short):
    store = make([sizes] * 61)
    plan = PassagePlan(store, replace(PAIRS, short=short), LENGTH, TOKENS, 3)
    truth = np.concatenate([sequences(plan, epoch)["is_next"] for epoch in range(53)])
    assert abs(truth.mean() - 0.5) < 2.25 / np.sqrt(len(truth))  # 4.5 standard deviations


def test_replaced_sentences_are_gathered_again(big_store):
    """Where nothing is too long, only a sentence that is left alone, or half of one, is left out."""
    planned = sequences(PassagePlan(big_store, PAIRS, 2003, TOKENS, 3))
    own = np.zeros(len(big_store.ids), int)
    for sequence in planned:
        own[slice(*sequence["first"])] += 1
        own[slice(*sequence["second"])] += int(sequence["is_next"])
    assert own.max() == 1
    unseen = np.unique(np.searchsorted(big_store.sentences, np.flatnonzero(own == 0), side="right") - 1)
    begins, sizes = big_store.sentences[unseen], np.diff(big_store.sentences)[unseen]
    halved = own[begins] == 1  # sentences that were gathered alone and cut in two
    left_alone = np.isin(unseen + 1, big_store.documents)
    assert (halved | (sizes == 1) | left_alone).all()
    assert len(unseen) < 0.5 * len(big_store)


def test_a_short_sentence_at_the_end_of_a_longer_document_is_never_cut_in_two(make):
    store = make([[7, 5, 3, 11]] * 13)
    plan = PassagePlan(store, replace(PAIRS, short=0.0), 61, TOKENS, 1)
    seen = np.concatenate([sequences(plan, epoch)["first"] for epoch in range(23)])
    assert np.isin(seen, store.sentences).all()
    assert {int(end - begin) for begin, end in seen} == {7, 5, 3, 7 + 5, 5 + 3, 7 + 5 + 3}  # 11 is only ever second


def test_the_share_of_short_sequences_is_the_one_asked_for(make):
    store = make([[1] * 5003, [1] * 5003])
    for short in (0.0, 0.1, 0.5):
        planned = [
            sequences(PassagePlan(store, replace(SINGLES, short=short), LENGTH, TOKENS, seed)) for seed in range(23)
        ]
        spans = np.concatenate([epoch["first"] for epoch in planned])
        lengths = spans[:, 1] - spans[:, 0]
        expected = short * 57 / 58  # a random length from 2 to 59 may be the full one
        assert abs((lengths < 59).mean() - expected) <= 2 * 23 / len(lengths) + 4.5 * np.sqrt(short / len(lengths))
        assert lengths.min() >= 1


def test_a_long_pair_loses_tokens_at_both_ends_of_its_longer_side(make):
    store = make([[41, 199], [41, 199]])
    lost = []
    for seed in range(101):
        planned = sequences(PassagePlan(store, replace(PAIRS, short=0.0), LENGTH, TOKENS, seed))
        whole = planned[planned["is_next"] & (planned["first"][:, 0] % 240 < 41)]  # none is of one sentence alone
        assert (whole["first"][:, 1] - whole["first"][:, 0]).tolist() == [29] * len(whole)
        assert (whole["second"][:, 1] - whole["second"][:, 0]).tolist() == [29] * len(whole)
        lost += zip(whole["first"][:, 0] % 240, whole["second"][:, 0] % 240 - 41, strict=True)
    mean = np.mean(lost, axis=0)
    deviation = np.sqrt([12 / 4, 170 / 4]) / np.sqrt(len(lost))  # of 12 and 170 fair coins
    assert (np.abs(mean - [12 / 2, 170 / 2]) < 4.5 * deviation).all()


@settings(max_examples=23, deadline=None)
@given(sizes_of_sentences, st.sampled_from([PAIRS, SINGLES]))
def test_batches_keep_to_the_budget_and_hold_each_sequence_once(make, sizes, masking):
    store = make([[*document, 2] for document in sizes])
    plan = PassagePlan(store, masking, LENGTH, 151, 5)
    batches = plan.epoch(3)
    for batch in batches:
        ids, _, _ = read_passages(store, batch)
        assert ids.shape[1] <= LENGTH
        assert ids.size <= 151 or len(ids) == 1
    numbers = np.sort(np.concatenate([batch["number"] for batch in batches]))
    assert numbers.tolist() == list(range(len(numbers)))


def test_an_epoch_is_a_pure_function_of_seed_and_epoch(big_store):
    plan = PassagePlan(big_store, PAIRS, LENGTH, TOKENS, 11)
    epochs = [content(plan, epoch) for epoch in range(3)]
    again = PassagePlan(big_store, PAIRS, LENGTH, TOKENS, 11)
    assert [content(again, epoch) for epoch in (2, 1, 0)] == epochs[::-1]
    assert epochs[0] != epochs[1]
    assert content(PassagePlan(big_store, PAIRS, LENGTH, TOKENS, 12), 0) != epochs[0]


@pytest.mark.parametrize("masking", [PAIRS, SINGLES], ids=["pairs", "singles"])
def test_a_batch_is_what_the_plan_says(big_store, masking):
    for batch in PassagePlan(big_store, masking, LENGTH, TOKENS, 3).epoch(0)[:11]:
        ids, segments, is_next = read_passages(big_store, batch)
        assert ids.dtype == segments.dtype == np.int64
        rows, sides = [], []
        for sequence in batch:
            first, second = (big_store.ids[slice(*sequence[name])].tolist() for name in ("first", "second"))
            rows.append([2, *first, 3, *([*second, 3] if second else [])])
            sides.append([0] * (len(first) + 2) + ([1] * (len(second) + 1) if second else []))
        width = max(map(len, rows))
        assert ids.tolist() == [row + [0] * (width - len(row)) for row in rows]
        assert segments.tolist() == [side + [0] * (width - len(side)) for side in sides]
        assert is_next.tolist() == batch["is_next"].tolist()


def test_strangers_come_from_all_other_documents(make):
    store = make([[7, 5, 3]] * 5)
    plan = PassagePlan(store, PAIRS, 13, TOKENS, 3)
    pairs = set()
    for epoch in range(101):
        planned = sequences(plan, epoch)
        planned = planned[~planned["is_next"]]
        first, second = (document_of(store, planned[name][:, 0]).tolist() for name in ("first", "second"))
        pairs |= set(zip(first, second, strict=True))
    assert pairs == {(one, other) for one in range(5) for other in range(5) if one != other}


def test_strangers_begin_at_any_sentence(make):
    store = make([[7, 5, 3]] * 5)
    planned = np.concatenate([sequences(PassagePlan(store, PAIRS, LENGTH, TOKENS, seed)) for seed in range(101)])
    assert set(store.sentences[:-1].tolist()) <= set(planned["second"][~planned["is_next"], 0].tolist())


def test_a_sentence_that_stands_alone_is_cut_and_its_stranger_is_the_end_of_another(make):
    store = make([[23]] * 7)
    planned = np.concatenate([sequences(PassagePlan(store, PAIRS, LENGTH, TOKENS, seed)) for seed in range(23)])
    first, second = planned["first"], planned["second"]
    assert len(planned) == 23 * 7
    assert (first[:, 0] % 23 == 0).all()
    assert (second[:, 1] % 23 == 0).all()
    assert (first[:, 1] % 23 == second[:, 0] % 23).all()  # so neither length nor place gives the answer away
    assert set((first[:, 1] % 23).tolist()) == set(range(1, 23))


def test_planning_takes_less_time_than_a_few_loops_over_the_tokens(make):
    store = make([[23] * 173] * 25)
    assert times_as_long(lambda: PassagePlan(store, PAIRS, 128, 4096, 3).epoch(0), lambda: plain_python(99_475)) < 10


def test_one_document_has_no_strangers(make):
    store = make([[7, 5, 3]])
    with pytest.raises(InputError, match=r"is a single document.*masking\.next_sentence = false"):
        PassagePlan(store, PAIRS, LENGTH, TOKENS, 1)
    assert len(sequences(PassagePlan(store, SINGLES, LENGTH, TOKENS, 1))) == 1


def test_a_length_without_room_is_refused(make):
    store = make([[7], [5]])
    for masking, least in ((PAIRS, 5), (SINGLES, 4)):
        with pytest.raises(InputError, match=rf"data\.max_length = {least - 1} leaves no room.*{least} or more"):
            PassagePlan(store, masking, least - 1, TOKENS, 1)
        assert PassagePlan(store, masking, least, TOKENS, 1).epoch(0)


def test_documents_of_a_token_make_no_pairs(make):
    with pytest.raises(InputError, match="each of its documents is a single token"):
        PassagePlan(make([[1], [1]]), PAIRS, LENGTH, TOKENS, 1).epoch(0)
