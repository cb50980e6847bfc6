import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.checkpoint import claim, lock
from heedful.checkpoint.lock import is_claimed
from heedful.errors import InputError, RunError

HOLD = """
import sys
from filelock import lock_descriptor
file = open(sys.argv[1], "w")
lock_descriptor(file.fileno())
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
    with pytest.raises(InputError, match="cannot be used as a run folder"), claim(tmp_path / "file"):
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


def test_a_link_in_place_of_the_lock_is_refused_and_its_target_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear to me")
    run = tmp_path / "run"
    run.mkdir()
    (run / "heedful.lock").symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(InputError, match=r"heedful\.lock is a link"), claim(run):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "dear to me"


def test_without_its_lock_file_a_run_is_still_locked(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        (tmp_path / "heedful.lock").unlink()
        with pytest.raises(InputError, match="in use by another training"), claim(tmp_path):
            pass
        assert is_claimed(tmp_path)
        claimed.check()
        assert (tmp_path / "heedful.lock").is_file()
    assert not is_claimed(tmp_path)


def test_a_lock_file_of_another_process_is_noticed(tmp_path: Path) -> None:
    with claim(tmp_path) as claimed:
        (tmp_path / "heedful.lock").unlink()
        (tmp_path / "heedful.lock").write_text("another")
        with pytest.raises(RunError, match="another process has replaced"):
            claimed.check()


def test_a_run_that_is_moved_is_not_saved_until_it_is_back(tmp_path: Path) -> None:
    with claim(tmp_path / "run") as claimed:
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        with pytest.raises(RunError, match="was moved or removed during training: move it back"):
            claimed.check()
        (tmp_path / "elsewhere").rename(tmp_path / "run")
        claimed.check()


@pytest.mark.parametrize("unlocked", ["folders", "everything"])
def test_a_run_begins_where_the_system_locks_less(
    unlocked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = lock.lock_descriptor

    def refuse(descriptor: int, *, blocking: bool) -> bool:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "folders have no locks")  # as on NFS
        if unlocked == "everything":
            raise OSError(errno.ENOSYS, "there are no locks")
        return take(descriptor, blocking=blocking)

    monkeypatch.setattr(lock, "lock_descriptor", refuse)
    with claim(tmp_path) as claimed:
        claimed.check()
        assert is_claimed(tmp_path) == (unlocked == "folders")
    assert not is_claimed(tmp_path)


def test_a_file_system_whose_locks_fail_is_an_error_about_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, *, blocking: bool) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "lock_descriptor", refuse)
    with pytest.raises(InputError, match=r"cannot be used as a run folder \(No locks available\)"), claim(tmp_path):
        pass
    assert not is_claimed(tmp_path)
