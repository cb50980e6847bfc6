"""Claims: one holder at a time, and none that is dead."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.jobs import folder_job as claims
from heedful.jobs.folder_job import Claims

HOLD = """
import sys, time
from pathlib import Path
from heedful.jobs.folder_job import Claims
with Claims(float(sys.argv[2])).claim(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    time.sleep(600)
"""


def held_by_a_process(path: Path, lease: float) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path), str(lease)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "True\n"
    return holder


def is_free(path: Path, claims: Claims) -> bool:
    with claims.claim(path) as ours:
        return ours


def elsewhere(monkeypatch: pytest.MonkeyPatch, lease: float) -> Claims:
    """Claims of another machine."""
    with monkeypatch.context() as patch:
        patch.setattr(claims, "this_machine", lambda: b"another machine")
        return Claims(lease)


def test_a_claim_has_one_holder_and_is_given_back(tmp_path):
    path, first, second = tmp_path / "a.claim", Claims(), Claims()
    with first.claim(path) as ours:
        assert ours
        assert not is_free(path, second)
    assert list(tmp_path.iterdir()) == []
    assert is_free(path, second)


def test_an_error_gives_the_claim_back(tmp_path):
    with pytest.raises(ZeroDivisionError), Claims().claim(tmp_path / "a.claim") as ours:
        assert ours / 0
    assert list(tmp_path.iterdir()) == []


def test_a_claim_in_a_folder_that_is_gone_is_not_given(tmp_path):
    assert not is_free(tmp_path / "gone" / "a.claim", Claims())


def test_the_claim_of_a_killed_process_is_free_at_once(tmp_path):
    path = tmp_path / "a.claim"
    holder = held_by_a_process(path, 60)
    assert not is_free(path, Claims())
    holder.kill()
    holder.communicate()
    assert path.exists()
    assert is_free(path, Claims())


def test_another_machine_waits_until_a_claim_is_not_touched_any_more(tmp_path, monkeypatch):
    path, lease = tmp_path / "a.claim", 0.7
    other, holder = elsewhere(monkeypatch, lease), held_by_a_process(path, lease)
    end = time.monotonic() + 2 * lease
    while time.monotonic() < end:
        assert not is_free(path, other)
        time.sleep(0.05)
    holder.kill()
    holder.communicate()
    assert not is_free(path, other)
    time.sleep(2 * lease)
    assert is_free(path, other)


def without_locks(*_: object, **__: object) -> bool:
    raise OSError(errno.ENOSYS, "no file locks")


def test_without_file_locks_touches_alone_decide(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "lock_descriptor", without_locks)
    path, other = tmp_path / "a.claim", Claims(0.7)
    with Claims(60).claim(path) as ours:
        assert ours
        assert not is_free(path, other)
        os.utime(path)
        assert not is_free(path, other)
        time.sleep(1)
        assert is_free(path, other)
