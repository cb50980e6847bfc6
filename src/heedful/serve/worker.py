"""Worker thread that runs one model computation at a time, as torch spreads each over all cores by itself."""

from collections.abc import Callable
from functools import partial
from threading import Event, Lock
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from heedful.errors import RunError

LOOK = 0.1  # seconds after which a job that waits looks if its caller is gone

T = TypeVar("T")


class BusyError(RunError):
    """Raised if too many jobs are waiting for the worker already."""


class CancelledError(RunError):
    """Raised inside a job whose caller does not wait for the result any more."""


class Worker:
    """Runs jobs in a thread, one at a time, in the order of arrival.

    Args:
        waiting: the number of jobs that may wait.
    """

    def __init__(self, waiting: int = 8) -> None:
        self._most = waiting
        self._turn = CapacityLimiter(1)
        self._running = Lock()  # until a cancelled job has stopped, the next one waits
        self._cancelled = Event()  # set when the job that runs is cancelled
        self._closed = Event()

    async def run(self, job: Callable[[], T], *, admitted: bool = False) -> T:
        """Run a job in the worker thread; if the caller is cancelled, a job never begins, or stops at the next `check`.

        Args:
            job: the job.
            admitted: True if it goes on with one that was let in before, and may wait however many wait already.

        Raises:
            BusyError: too many jobs wait already.
        """
        if not admitted and self._turn.statistics().tasks_waiting >= self._most:
            raise BusyError(f"{self._most} requests are waiting already; ask again in a moment")
        cancelled = Event()
        alone = partial(self._alone, job, cancelled)
        try:
            return await to_thread.run_sync(alone, abandon_on_cancel=True, limiter=self._turn)
        finally:
            cancelled.set()

    def check(self, *_: object) -> None:
        """Stop the running job if its caller is gone; long computations call this between their steps.

        Raises:
            CancelledError: the job's caller was cancelled, or the worker is closed.
        """
        if self._cancelled.is_set() or self._closed.is_set():
            raise CancelledError("nobody waits for the answer any more")

    def close(self) -> None:
        """Stop the running job at its next `check`, and let no other job begin."""
        self._closed.set()

    def _alone(self, job: Callable[[], T], cancelled: Event) -> T:
        while not self._running.acquire(timeout=LOOK):
            if cancelled.is_set() or self._closed.is_set():
                raise CancelledError("nobody waits for the answer any more")
        try:
            self._cancelled = cancelled
            self.check()
            return job()
        finally:
            self._cancelled = Event()
            self._running.release()
