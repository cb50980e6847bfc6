"""Commands of heedful in processes of their own: started, waited for, and killed with all that they have started."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import toy

LONGEST = 600.0  # seconds that a command may take; more is a hang
FORKS = multiprocessing.get_context("forkserver")
# 1 s instead of 4; an optimizer imports torch._dynamo
FORKS.set_forkserver_preload(["torch._dynamo", "heedful.cli", "heedful.training.loop", "heedful.training.preflight"])


class Command:
    """Running command of heedful: forked from a process that has imported it, or started by torchrun in several.

    Args:
        arguments: what follows `heedful` on the command line.
        errors: the file that its messages go to.
        processes: the processes that train.
        environment: more variables of its environment.
    """

    def __init__(
        self, arguments: Sequence[str], errors: Path, processes: int = 1, environment: dict[str, str] | None = None
    ) -> None:
        self.errors = errors
        extra = environment or {}
        self._child: BaseProcess | subprocess.Popen[bytes]
        if processes == 1:
            self._child = fork = FORKS.Process(target=call, args=(list(arguments), errors, extra), daemon=True)
            fork.start()
        else:
            words = toy.command(*arguments, "--processes", str(processes))
            with errors.open("ab") as stream:
                self._child = subprocess.Popen(words, env=toy.environment() | extra, stderr=stream)
        self.pid = self._child.pid or 0

    @property
    def code(self) -> int | None:
        """The exit code; None while the command runs, and negative after a signal."""
        return self._child.poll() if isinstance(self._child, subprocess.Popen) else self._child.exitcode

    def follow(self, seconds: float = LONGEST) -> int | None:
        """Wait for the end of the command, for at most some seconds, and return its exit code; None if it goes on."""
        end = time.monotonic() + seconds
        while self.code is None and time.monotonic() < end:
            time.sleep(0.01)
        return self.code

    def processes(self) -> list[int]:
        """The process of the command, and those that it has started."""
        return [self.pid, *descendants(self.pid)]

    def end(self) -> None:
        """Kill what is left of the command."""
        kill(self.processes())
        self.follow()

    def said(self) -> str:
        """What the command has written to standard error."""
        return self.errors.read_text(encoding="utf-8") if self.errors.exists() else ""


def call(arguments: list[str], errors: Path, environment: dict[str, str]) -> None:
    """Call the command line of heedful in this process."""
    from heedful.cli import main

    os.environ.update(environment)
    sys.argv = ["heedful", *arguments]
    with errors.open("ab") as stream:
        os.dup2(stream.fileno(), 2)
    main()


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to those of some processes that still run."""
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def gone(pids: Sequence[int], seconds: float = LONGEST) -> bool:
    """Wait until none of some processes runs; False if one outlives these seconds."""
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    """True if a process runs, and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have started."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(word) for task in tasks for word in task.read_text(encoding="utf-8").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [found for child in children for found in (child, *descendants(child))]
