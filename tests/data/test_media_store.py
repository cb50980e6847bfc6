"""Bytes of files and their targets on disk: come back as they were, in bounded memory, and damage is noticed."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from heedful.data.stores import MediaExample, MediaStore
from heedful.errors import InputError, RunError

EXAMPLES = [
    MediaExample(b"one", 7, [2]),
    MediaExample(b"\x00\xff" * 23, 5, [11, 13, 3]),
    MediaExample(b"x", 3, []),
    MediaExample(b"last", 13, [17, 3]),
]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def test_files_come_back_byte_by_byte_with_their_targets(folder):
    written = MediaStore.write(folder, iter(EXAMPLES), vocab_size=29)
    for store in (written, MediaStore.open(folder)):
        assert len(store) == 4
        assert [store.content(index) for index in range(4)] == [example.content for example in EXAMPLES]
        assert [store.target(index).tolist() for index in range(4)] == [example.target for example in EXAMPLES]
        assert store.target(1).dtype == np.int64
        assert store.lengths.tolist() == [[7, 1], [5, 3], [3, 0], [13, 2]]


@pytest.mark.parametrize("name", ["contents.bin", "ids.bin", "bounds.npy", "lengths.npy", "offsets.npy"])
def test_a_changed_byte_or_a_missing_file_is_found(name, folder):
    MediaStore.write(folder, EXAMPLES, vocab_size=29)
    path = folder / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"no valid prepared data \(.*{name}.*\); prepare it again"):
        MediaStore.open(folder)
    path.unlink()
    with pytest.raises(InputError, match="no valid prepared data"):
        MediaStore.open(folder)


def test_a_store_of_another_kind_is_refused(folder):
    from heedful.data.stores import PairStore

    PairStore.write(folder, [([7, 3], [5])], vocab_size=29)
    with pytest.raises(InputError, match=r"it contains .*: data of a different kind"):
        MediaStore.open(folder)


def test_what_fails_on_the_way_leaves_nothing(folder):
    def broken() -> Iterator[MediaExample]:
        yield EXAMPLES[0]
        raise InputError("the second file is damaged")

    with pytest.raises(InputError, match="the second file"):
        MediaStore.write(folder, broken(), vocab_size=29)
    with pytest.raises(ValueError, match="vocabulary of 13"):
        MediaStore.write(folder, EXAMPLES, vocab_size=13)
    assert list(folder.parent.iterdir()) == []


def test_nothing_is_written_over(folder):
    folder.mkdir()
    with pytest.raises(RunError, match="it already exists"):
        MediaStore.write(folder, EXAMPLES, vocab_size=29)


def test_one_file_is_in_memory_at_a_time(folder):
    size, count = 1_000_003, 41

    def examples() -> Iterator[MediaExample]:
        for number in range(count):
            yield MediaExample(bytes([number]) * size, 7, [number])

    tracemalloc.start()
    store = MediaStore.write(folder, examples(), vocab_size=97)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5 * size
    assert store.content(40) == bytes([40]) * size
