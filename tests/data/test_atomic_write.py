"""A file is there as a whole or not at all."""

import pytest

from heedful.data.atomic_write import replacing


def test_a_file_gets_its_name_when_all_is_written(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def write_half(stream):
    stream.write(b"ne")
    raise OSError("the disk is full")


def test_of_a_file_that_was_not_finished_nothing_is_left(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="full"), replacing(path) as stream:
        write_half(stream)
    assert not list(tmp_path.iterdir())
