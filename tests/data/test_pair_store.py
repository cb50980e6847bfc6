import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data import stores
from heedful.data.stores import PairStore
from heedful.errors import InputError, RunError
from heedful.storage.disk import Storage

PAIRS = [([7, 5, 3], [11, 3]), ([3], [3]), ([13, 17, 19, 23, 3], [2, 3])]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def test_pairs_come_back_as_they_were_written(folder):
    store = PairStore.write(folder, iter(PAIRS), vocab_size=29)
    assert len(store) == 3
    for index, (source, target) in enumerate(PAIRS):
        assert store.source(index).tolist() == source
        assert store.target(index).tolist() == target
        assert store.source(index).dtype == store.target(index).dtype == np.int64
    assert store.lengths.tolist() == [[3, 2], [1, 1], [5, 2]]
    with pytest.raises(IndexError):
        store.source(3)


@settings(max_examples=23, deadline=None)
@given(st.lists(st.tuples(*[st.lists(st.integers(0, 70_000), min_size=1)] * 2), min_size=1))
def test_any_rows_come_back(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("any") / "store"
    store = PairStore.write(folder, pairs, vocab_size=70_001)
    again = PairStore.open(folder)
    assert len(store) == len(again) == len(pairs)
    for index, (source, target) in enumerate(pairs):
        assert again.source(index).tolist() == source
        assert again.target(index).tolist() == target


@pytest.mark.parametrize(("vocab_size", "bytes_per_id"), [(65_536, 2), (65_537, 4)])
def test_ids_take_two_bytes_where_the_vocabulary_allows(folder, vocab_size, bytes_per_id):
    last = vocab_size - 1
    store = PairStore.write(folder, [([last, 3], [last])], vocab_size)
    assert store.source(0).tolist() == [last, 3]
    assert (folder / "ids.bin").stat().st_size == 3 * bytes_per_id


@pytest.mark.parametrize("bad", [29, 65_539, -1])
def test_an_id_outside_the_vocabulary_is_not_written(folder, bad):
    with pytest.raises(ValueError, match="vocabulary of 29"):
        PairStore.write(folder, [*PAIRS, ([bad, 3], [3])], vocab_size=29)
    assert not list(folder.parent.iterdir())


def test_a_store_holds_at_least_one_pair(folder):
    with pytest.raises(ValueError, match="at least one pair"):
        PairStore.write(folder, [], vocab_size=29)


def test_equal_content_has_an_equal_manifest(tmp_path):
    moved_border = [([7, 5, 3, 11], [3]), *PAIRS[1:]]
    manifests = []
    for number, pairs in enumerate((PAIRS, PAIRS, PAIRS[::-1], moved_border)):
        PairStore.write(tmp_path / str(number), pairs, vocab_size=29)
        manifests.append((tmp_path / str(number) / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]
    assert len(set(manifests)) == 3


def test_chunks_leave_no_seams(folder, monkeypatch):
    monkeypatch.setattr(stores, "CHUNK", 7)
    rng = random.Random(3)
    rows = [[rng.randrange(97) for _ in range(rng.randint(1, 11))] for _ in range(202)]
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    store = PairStore.write(folder, pairs, vocab_size=97)
    assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(101)] == pairs


def test_writing_takes_little_memory(folder):
    pairs = (([5] * 41 + [3], [7] * 37 + [3]) for _ in range(20_011))
    tracemalloc.start()
    try:
        store = PairStore.write(folder, pairs, vocab_size=29)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert store.ids.nbytes == 20_011 * 80 * 2
    assert peak < 8 << 20  # all ids as Python lists would be 13 MB and more


def damages():
    """Every file of a store: cut, emptied, lost, one bit flipped, a page zeroed, too long, of another store."""
    for name in ("ids.bin", "lengths.npy", "offsets.npy", "manifest.json"):
        yield f"{name} is cut", name, lambda path, _: path.write_bytes(path.read_bytes()[:-1])
        yield f"{name} is empty", name, lambda path, _: path.write_bytes(b"")
        yield f"{name} is lost", name, lambda path, _: path.unlink()
        yield f"{name} is longer", name, lambda path, _: path.write_bytes(path.read_bytes() + b"\0")
        yield f"{name} is zeroed", name, lambda path, _: path.write_bytes(bytes(path.stat().st_size))
        yield f"{name} is another's", name, lambda path, other: path.write_bytes((other / path.name).read_bytes())
        for place in range(11):
            yield f"{name} has a flipped bit, {place}", name, lambda path, _, place=place: flip(path, place)


def flip(path: Path, seed: int) -> None:
    content = bytearray(path.read_bytes())
    rng = random.Random(seed)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize(("name", "damage"), [pytest.param(*rest, id=title) for title, *rest in damages()])
def test_a_damaged_store_is_never_opened(folder, name, damage):
    PairStore.write(folder, PAIRS, vocab_size=29)
    other = folder.with_name("other")
    PairStore.write(other, [([7, 3], [11, 3]), *PAIRS[1:]], vocab_size=29)
    damage(folder / name, other)
    with pytest.raises(InputError, match=r"^.*no valid prepared data.*$"):
        PairStore.open(folder)


STRANGE = {"list": "[]", "null": "null", "number": "7", "empty": "{}", "digest": '{"digest": 7}', "deep": "[" * 50_021}


@pytest.mark.parametrize("content", STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_manifest_is_refused(folder, content):
    PairStore.write(folder, PAIRS, vocab_size=29)
    (folder / "manifest.json").write_text(content)
    with pytest.raises(InputError, match="no valid prepared data"):
        PairStore.open(folder)


def test_an_edited_manifest_is_refused(folder):
    PairStore.write(folder, PAIRS, vocab_size=29)
    path = folder / "manifest.json"
    for key, value in {"dtype": "<u4", "format": 2, "pairs": 2, "files": {}}.items():
        original = path.read_text()
        path.write_text(json.dumps(json.loads(original) | {key: value}))
        with pytest.raises(InputError, match="no valid prepared data"):
            PairStore.open(folder)
        path.write_text(original)
    assert len(PairStore.open(folder)) == 3


def test_a_missing_store_is_named(folder):
    with pytest.raises(InputError, match=r"store: no valid prepared data .*prepare it again"):
        PairStore.open(folder)


def test_a_writer_that_fails_leaves_nothing(folder):
    def pairs():
        yield PAIRS[0]
        raise InputError("line 2 is bad")

    with pytest.raises(InputError, match="line 2"):
        PairStore.write(folder, pairs(), vocab_size=29)
    assert not list(folder.parent.iterdir())


def test_what_is_there_is_never_overwritten(folder):
    folder.mkdir()
    (folder / "thesis.txt").write_text("precious")
    with pytest.raises(RunError, match="cannot be written"):
        PairStore.write(folder, PAIRS, vocab_size=29)
    assert [path.name for path in folder.parent.rglob("*")] == ["store", "thesis.txt"]


def test_what_a_killed_writer_left_is_removed(folder):
    stale = folder.with_name(".tmp-store")
    stale.mkdir()
    (stale / "ids.bin").write_bytes(b"half")
    other = folder.with_name(".tmp-store-of-mine")
    other.mkdir()
    PairStore.write(folder, PAIRS, vocab_size=29)
    assert sorted(path.name for path in folder.parent.iterdir()) == [other.name, "store"]


def test_a_full_disk_is_an_error_of_the_run(folder, monkeypatch):
    def full(_, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Storage, "create", full)
    with pytest.raises(RunError, match="No space left on device"):
        PairStore.write(folder, PAIRS, vocab_size=29)
    assert not list(folder.parent.iterdir())
