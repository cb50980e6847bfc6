"""Prepared data that another process touches while it is mapped: harmless, or told, but never other numbers."""

import os
from pathlib import Path

import numpy as np
import pytest

from heedful.data.stores import PairStore
from heedful.errors import RunError

PAIRS = [([5, 7, 3], [11, 3]), ([13, 3], [17, 19, 3])]


@pytest.fixture
def store(tmp_path: Path) -> PairStore:
    return PairStore.write(tmp_path / "store", PAIRS, 23)


def check(store: PairStore) -> None:
    for file in store.files:
        file.check()


def test_new_dates_and_a_removed_folder_are_harmless(store: PairStore, tmp_path: Path) -> None:
    check(store)
    os.utime(tmp_path / "store/ids.bin", (7, 7))
    check(store)
    (tmp_path / "store/ids.bin").unlink()
    check(store)
    assert store.source(1).tolist() == [13, 3]


@pytest.mark.parametrize("name", ["ids.bin", "lengths.npy", "offsets.npy"])
def test_a_cut_file_is_told_by_name(name: str, store: PairStore, tmp_path: Path) -> None:
    os.truncate(tmp_path / "store" / name, 1)
    with pytest.raises(RunError, match=f"{name} was changed during training; run the same command again"):
        check(store)


def test_other_bytes_are_told_whatever_the_dates(store: PairStore, tmp_path: Path) -> None:
    path = tmp_path / "store/ids.bin"
    before = path.stat()
    with path.open("rb+") as file:
        file.write(b"\x02")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(RunError, match=r"ids\.bin was changed"):
        check(store)


def test_arrays_are_those_that_were_written(store: PairStore) -> None:
    assert isinstance(store.lengths, np.memmap)
    assert store.lengths.tolist() == [[3, 2], [2, 3]]
    assert store.target(1).tolist() == [17, 19, 3]
