import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.checkpoint import claim
from heedful.errors import InputError

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("another machine", file=file, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_folder_is_made_and_can_be_claimed_again(tmp_path: Path) -> None:
    for _ in range(2):
        with claim(tmp_path / "above" / "run"):
            (tmp_path / "above" / "run" / "checkpoints").mkdir(exist_ok=True)


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    with claim(tmp_path):
        assert (tmp_path / "heedful.lock").read_text().startswith(f"process {os.getpid()} on ")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear to me")
    with pytest.raises(InputError, match="not empty and is not a heedful run"), claim(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be the folder of a run"), claim(tmp_path / "file"):
        pass


def test_two_trainings_do_not_write_one_run(tmp_path: Path) -> None:
    with claim(tmp_path):
        pass
    command = [sys.executable, "-c", HOLD, str(tmp_path / "heedful.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="in use by another machine"), claim(tmp_path):
            pass
        other.kill()
        other.wait()
        with claim(tmp_path):
            pass
