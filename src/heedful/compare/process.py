"""Process of one system of a comparison: started, and told of signals, so that it saves before it ends.

A system in a process of its own has memory that is measured by itself, and takes no other system with it when it fails.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType, TracebackType

from heedful.train.signals import Interruption


class SystemProcess:
    """Process that does the job in a file; signals that this process gets in the meantime are passed on to it.

    Args:
        job: the file of the job.
    """

    def __init__(self, job: Path) -> None:
        # In a session of its own, as a terminal sends Ctrl-C to all processes of one, and the second ends a training.
        # Its standard input ends when this process does, however it ends: see `end_with_parent`.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "heedful.compare", str(job)], stdin=subprocess.PIPE, start_new_session=True
        )
        self.signal: int | None = None

    def __enter__(self) -> "SystemProcess":
        self.before = {number: signal.signal(number, self.forward) for number in Interruption.heard()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def forward(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: note it, and pass it on."""
        self.signal = number
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end of the process; return its exit code, negative for the signal that killed it."""
        return self.process.wait()


def run_process(job: Path) -> tuple[int, int | None]:
    """Run the process of a job to its end; return its exit code, and the signal that interrupted it or None."""
    with SystemProcess(job) as running:
        return running.wait(), running.signal


def end_with_parent() -> None:
    """End this process as SIGTERM does when the one that started it is gone; a training is saved before."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
