"""Signals before training: what ends, how soon, and with which exit code."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import heedful
from heedful.cli.stopping import Stopping, exit_code
from heedful.errors import Interrupted
from heedful.training.signals import Interruption

SOURCE = str(Path(heedful.__file__).parents[1])
BUSY = """
import hashlib, os, signal, threading
from heedful.cli.stopping import Stopping
with Stopping(False):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**9)  # no handler of Python runs meanwhile
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in another process, which has to end by itself."""
    environment = os.environ | {"PYTHONPATH": SOURCE}
    return subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120, env=environment
    )


@pytest.mark.parametrize(
    ("code", "requeue", "told"),
    [
        (0, True, 0),
        (2, True, 2),
        (130, True, 130),
        (129, True, 75),
        (138, True, 75),
        (143, True, 75),
        (143, False, 143),
    ],
)
def test_a_supervisor_is_told_to_start_again_after_all_signals_but_ctrl_c(code, requeue, told):
    assert exit_code(code, requeue) == told


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_a_signal_ends_the_block_once_and_what_is_half_made_can_be_removed(number, code):
    before, removed = signal.getsignal(number), []

    def stopped_twice() -> None:
        with Stopping(False):
            try:
                os.kill(os.getpid(), number)
            finally:
                os.kill(os.getpid(), number)
                removed.append("half made")

    with pytest.raises(Interrupted, match=r"stopped by SIG.*the same command resumes") as raised:
        stopped_twice()
    assert removed
    assert raised.value.exit_code == code
    assert signal.getsignal(number) == before


def test_within_training_its_own_handler_is_in_charge():
    with Stopping(False), Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
    assert interruption.exit_code == 143


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stopping = Stopping(False)
    try:
        with stopping:
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not stopping.stopped


@pytest.mark.slow
def test_code_that_is_not_python_is_ended_after_some_seconds():
    ended = run(BUSY)
    assert (ended.returncode, ended.stderr) == (
        143,
        "heedful: stopped by SIGTERM; the same command resumes from the newest checkpoint, or starts again if there is "
        "none\n",
    )


LONG = """
import hashlib, os, signal, threading
from heedful.cli.stopping import Stopping
from heedful.training.signals import Interruption
with Stopping(False), Interruption() as interruption:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with interruption.work.abandonable(lambda: print("saved", flush=True)):
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**9)  # no handler of Python runs meanwhile
"""


@pytest.mark.slow
def test_an_update_that_takes_long_is_abandoned_and_the_run_saved():
    ended = run(LONG)
    assert (ended.returncode, ended.stdout) == (143, "saved\n")
    assert "stopped and saved in the middle of a long update or validation (SIGTERM)" in ended.stderr
