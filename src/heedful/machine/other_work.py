"""CPU use by other processes, and a policy that leaves cores to them by making waiting OpenMP threads spin less.

Between two operations of a training step, torch's OpenMP threads spin: they poll for work in a loop. That is fastest on
an idle machine. On a busy machine, it takes the core from the very thread that all others wait for. GNU's OpenMP
library spins 3,000 times less when it has more threads than processors (GOMP_SPINCOUNT in its manual). Creating an idle
second thread pool switches to short spinning, and ending the pool switches back, during training.
"""

import sys
import threading
import time
from collections.abc import Callable

import psutil
import torch

from heedful.machine.cores import allowed_cores, usable_cores

PERIOD = 1.0  # seconds over which CPU use is averaged
BUSY, QUIET = 0.25, 0.1  # cores used by other processes: above BUSY, threads spin briefly; below QUIET, long again
GRAIN = 32_768  # the minimum number of elements that torch gives to a thread
IDLE = frozenset({"idle", "iowait", "steal", "guest", "guest_nice"})  # not work, or counted in user time as well


class SparePool:
    """A second, idle pool of OpenMP threads; while it exists, all waiting threads spin only briefly."""

    def __init__(self) -> None:
        self.started, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold, daemon=True, name="spare OpenMP pool")
        self.thread.start()
        self.started.wait()

    def hold(self) -> None:
        # One parallel operation creates the pool, which lives as long as this thread.
        torch.zeros(GRAIN * torch.get_num_threads()).add_(1)
        self.started.set()
        self.over.wait()

    def close(self) -> None:
        self.over.set()
        self.thread.join()


class OtherWork:
    """Meter for the number of CPU cores that other processes use between two calls."""

    def __init__(self) -> None:
        self.before = self.now()

    def now(self) -> tuple[float, float, float]:
        """Return three times in seconds: the clock, and the processor time used by all processes and by this one."""
        return time.monotonic(), busy_seconds(), time.process_time()

    def cores(self) -> float | None:
        """Return the mean number of cores used by other processes since the last result.

        Return None if that was less than `PERIOD` seconds ago.
        """
        if time.monotonic() - self.before[0] < PERIOD:  # checked before reading anything: every update calls this
            return None
        before, self.before = self.before, self.now()
        clock, everybody, ours = (now - then for now, then in zip(self.before, before, strict=True))
        return max(0.0, everybody - ours) / clock


def busy_seconds() -> float:
    """Return the seconds that all processes have spent on the processors that this process may use."""
    processors = psutil.cpu_times(percpu=True)
    times = (processors[number]._asdict().items() for number in allowed_cores())
    return sum(seconds for fields in times for field, seconds in fields if field not in IDLE)


class WaitPolicy:
    """Policy for how long waiting OpenMP threads spin, given the load from other processes; results stay the same."""

    def __init__(self, others: OtherWork | None, report: Callable[[str], None]) -> None:
        self.others = others
        self.report = report
        self.spare: SparePool | None = None

    def __enter__(self) -> "WaitPolicy":
        return self

    def __exit__(self, *_: object) -> None:
        self.spin_long()

    def adapt(self) -> None:
        """Measure the load from other processes at most once a second: above BUSY, spin briefly; below QUIET, long."""
        cores = self.others.cores() if self.others else None
        if cores is None:
            return
        if self.spare is None and cores > BUSY:
            self.spare = SparePool()
            self.report(
                f"other processes use {cores:.1f} cores: idle threads now yield the processor instead of spinning"
            )
        elif self.spare is not None and cores < QUIET:
            self.spin_long()
            self.report("other processes no longer need the cores: idle threads spin again")

    def spin_long(self) -> None:
        """Let waiting threads spin as long as they do by default in the OpenMP library, by closing the spare pool."""
        if self.spare is not None:
            self.spare.close()
            self.spare = None


def wait_policy(device: torch.device, report: Callable[[str], None]) -> WaitPolicy:
    """Return the wait policy for a device.

    It is active only on a CPU under Linux, where torch uses GNU's OpenMP, with at least one thread per usable core and
    at least two threads.
    """
    threads = torch.get_num_threads()
    matters = device.type == "cpu" and threads > 1 and threads >= usable_cores() and sys.platform == "linux"
    return WaitPolicy(OtherWork() if matters else None, report)
