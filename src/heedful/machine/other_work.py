"""CPU use by other processes, and OpenMP threads that leave them the cores while waiting (spin less).

Between two operations of a training step torch's OpenMP threads spin: they ask in a loop whether there is work. That is
fastest on a quiet machine. Beside a busy process it takes the core from the very thread that all others wait for. GNU's
OpenMP library spins 3,000 times less as soon as more of its threads exist than there are processors (GOMP_SPINCOUNT in
its manual). Making an idle second pool of threads switches to short spinning, and ending the pool switches back, while
training goes on.
"""

import sys
import threading
import time
from collections.abc import Callable

import psutil
import torch

from heedful.machine.process import allowed_cores, usable_cores

PERIOD = 1.0  # seconds over which use is averaged
BUSY, QUIET = 0.25, 0.1  # cores used by other processes: above BUSY threads spin briefly, below QUIET long again
GRAIN = 32_768  # elements that torch gives to a thread at least
IDLE = frozenset({"idle", "iowait", "steal", "guest", "guest_nice"})  # times of a processor without work of this system


class SparePool:
    """A second pool of OpenMP threads that does nothing; while it exists all waiting threads spin only briefly."""

    def __init__(self) -> None:
        self.started, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold, daemon=True, name="spare OpenMP pool")
        self.thread.start()
        self.started.wait()

    def hold(self) -> None:
        # one parallel operation makes the pool, which lives as long as this thread
        torch.zeros(GRAIN * torch.get_num_threads()).add_(1)
        self.started.set()
        self.over.wait()

    def close(self) -> None:
        self.over.set()
        self.thread.join()


class OtherWork:
    """Measures how many CPU cores other processes use between two calls."""

    def __init__(self) -> None:
        self.before = self.now()

    def now(self) -> tuple[float, float, float]:
        """Read three times in seconds: the clock, processor time of all processes, processor time of this process."""
        return time.monotonic(), busy_seconds(), time.process_time()

    def cores(self) -> float | None:
        """Return the mean number of cores used by other processes since the last result; None in less than a second."""
        if time.monotonic() - self.before[0] < PERIOD:  # before anything is read, as every update asks
            return None
        before, self.before = self.before, self.now()
        clock, everybody, ours = (now - then for now, then in zip(self.before, before, strict=True))
        return max(0.0, everybody - ours) / clock


def busy_seconds() -> float:
    """Read the seconds that all processes have spent on the processors that this process may use."""
    processors = psutil.cpu_times(percpu=True)
    times = (processors[number]._asdict().items() for number in allowed_cores())
    return sum(seconds for fields in times for field, seconds in fields if field not in IDLE)


class WaitPolicy:
    """Adapts how long waiting OpenMP threads spin to the other work on the machine; changes no result."""

    def __init__(self, others: OtherWork | None, tell: Callable[[str], None]) -> None:
        self.others = others
        self.tell = tell
        self.spare: SparePool | None = None

    def __enter__(self) -> "WaitPolicy":
        return self

    def __exit__(self, *_: object) -> None:
        self.spin_long()

    def adapt(self) -> None:
        """Measure the other work, at most once a second, and let threads spin briefly on a busy machine, else long."""
        cores = self.others.cores() if self.others else None
        if cores is None:
            return
        if self.spare is None and cores > BUSY:
            self.spare = SparePool()
            self.tell(f"other processes use {cores:.1f} cores: waiting threads leave them the processor")
        elif self.spare is not None and cores < QUIET:
            self.spin_long()
            self.tell("the other processes are done: waiting threads spin again")

    def spin_long(self) -> None:
        """Let waiting threads spin as long as the OpenMP library's default, by closing the spare pool."""
        if self.spare is not None:
            self.spare.close()
            self.spare = None


def wait_policy(device: torch.device, tell: Callable[[str], None]) -> WaitPolicy:
    """Make the wait policy for a device; it acts only on a CPU with a thread on every usable core, and GNU's OpenMP."""
    threads = torch.get_num_threads()
    matters = device.type == "cpu" and threads > 1 and threads >= usable_cores() and sys.platform == "linux"
    return WaitPolicy(OtherWork() if matters else None, tell)
