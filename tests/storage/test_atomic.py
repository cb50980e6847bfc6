"""A file or a folder is there as a whole or not at all; tests/checkpoint lets the disk fail at each call."""

import os
from pathlib import Path

import pytest

from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file, atomic_folder, named_write_errors
from heedful.storage.complete_folder import DamagedError, verify_folder


def test_a_file_gets_its_name_when_all_is_written(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with atomic_file(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def write_half(stream):
    stream.write(b"ne")
    raise OSError("the disk is full")


def test_of_a_file_that_was_not_finished_nothing_is_left(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="full"), atomic_file(path) as stream:
        write_half(stream)
    assert not list(tmp_path.iterdir())


def test_no_file_replaces_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a device, a pipe or an open file"), atomic_file(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_appears_only_when_it_is_whole(tmp_path):
    folder = tmp_path / "deep" / "folder"
    with atomic_folder(folder) as writer:
        writer.write("sub/file", [b"con", b"tent"])
        (writer.path / "other").write_text("by other means")
        assert not folder.exists()
    assert (folder / "sub/file").read_bytes() == b"content"
    assert (folder / "other").read_text() == "by other means"
    assert list(folder.parent.iterdir()) == [folder]


def broken_off():
    yield b"ne"
    raise OSError("the disk is full")


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    with atomic_folder(tmp_path / "a") as writer:
        writer.write("old", [b"1"])
    with pytest.raises(OSError, match="full"), atomic_folder(tmp_path / "a") as writer:
        writer.write("new", broken_off())
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "old"]
    with atomic_folder(tmp_path / "a") as writer:
        writer.write("new", [b"2"])
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "new"]


def test_the_current_folder_is_not_replaced_under_the_feet_of_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (Path(), tmp_path):
        with pytest.raises(InputError, match="is the current folder"), atomic_folder(name) as writer:
            writer.write("new", [b"2"])
    assert list(tmp_path.iterdir()) == []


def test_a_sealed_folder_shows_a_changed_byte(tmp_path):
    with atomic_folder(tmp_path / "a") as writer:
        writer.write("file", [b"content"])
        writer.seal({"kind": "test"})
    assert verify_folder(tmp_path / "a").facts == {"kind": "test"}
    (tmp_path / "a/file").write_bytes(b"contend")
    with pytest.raises(DamagedError, match="does not match its checksum"):
        verify_folder(tmp_path / "a")


def test_a_failed_write_names_the_path_and_the_remedy(tmp_path):
    refused = pytest.raises(RunError, match=r"a: cannot be written .*; make room for it or choose another name")
    with refused, named_write_errors(tmp_path / "a"):
        (tmp_path / "a/b").write_bytes(b"")


def test_two_writers_of_a_file_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "file"
    with atomic_file(path, writer="one") as first:
        first.write(b"11")
        with atomic_file(path, writer="two") as second:
            second.write(b"2")
        assert path.read_bytes() == b"2"
        first.write(b"1")
    assert path.read_bytes() == b"111"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
