import os

import pytest

from heedful.storage.disk import read_small


def test_a_file_is_read_whole(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert read_small(tmp_path / "file", most=3) == b"abc"


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 20 * 10**9)
    with pytest.raises(OSError, match=r"20,000,000,000 bytes, but should have at most 7"):
        read_small(tmp_path / "file", most=7)


def test_a_pipe_and_a_device_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="a pipe or a device"):
            read_small(tmp_path / name)


def test_what_is_missing_or_a_folder_is_told_as_ever(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        read_small(tmp_path)
