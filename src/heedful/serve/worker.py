"""The one place where models run: torch spreads a single computation over the cores by itself."""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from heedful.errors import RunError

T = TypeVar("T")


class BusyError(RunError):
    """So many are waiting that one more would wait too long."""


class Worker:
    """Runs one job at a time, in the order in which they came.

    Args:
        waiting: jobs that may wait.
    """

    def __init__(self, waiting: int = 8) -> None:
        self._most = waiting
        self._one = CapacityLimiter(1)

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job; one whose caller has gone before its turn never runs.

        Raises:
            BusyError: too many wait already.
        """
        if self._one.statistics().tasks_waiting >= self._most:
            raise BusyError(f"{self._most} requests are waiting already; ask again in a moment")
        return await to_thread.run_sync(job, limiter=self._one)
