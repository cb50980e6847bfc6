"""Workers: copies of this process that compute a function ahead of it, on cores of their own."""

import atexit
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import cycle
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar
from weakref import WeakSet

import torch

from heedful.errors import HeedfulError, RunError

AHEAD = 2  # items that each worker is given at a time

T = TypeVar("T")
R = TypeVar("R")


def can_copy_processes() -> bool:
    """True on systems where a process can make copies of itself, such as Linux."""
    return sys.platform == "linux"


def map_ahead(function: Callable[[T], R], items: Iterable[T], count: int) -> Generator[R]:
    """Map a function over items, results in their order: in workers, or in threads on other systems than Linux.

    Threads help where the function mostly waits, or runs code that is not Python.
    """
    if can_copy_processes():
        with closing(Workers(function, count)) as workers:
            yield from workers.map(items)
        return
    given: deque[Future[R]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for item in items:
            given.append(pool.submit(function, item))
            if len(given) > AHEAD * count:
                yield given.popleft().result()
        yield from (future.result() for future in given)


class Workers(Generic[T, R]):
    """Copies of this process that compute a function of many items, and give the results in the order of the items.

    A copy knows what this process knows at its creation, so that nothing but items and results is sent; tensors come
    through shared memory. It computes with one thread, and must not use a GPU.

    Args:
        function: The function; a `HeedfulError` in a worker is raised here.
        count: The number of workers.
    """

    def __init__(self, function: Callable[[T], R], count: int) -> None:
        context = multiprocessing.get_context("fork")
        self.connections: list[Connection] = []
        self.processes = []
        OPEN.add(self)
        for _ in range(count):
            here, there = context.Pipe()
            self.connections.append(here)
            self.processes.append(context.Process(target=serve, args=(function, there, self.connections), daemon=True))
            self.processes[-1].start()
            there.close()

    def map(self, items: Iterable[T]) -> Iterator[R]:
        """Compute the function of each item; of the next items, `AHEAD` for each worker, it is computed meanwhile.

        Raises:
            HeedfulError: As the function does.
            RunError: A worker has ended, as the system ends one when memory runs short.
        """
        given: deque[Connection] = deque()
        for connection, item in zip(cycle(self.connections), items, strict=False):
            connection.send(item)
            given.append(connection)
            if len(given) > AHEAD * len(self.connections):
                yield self.received(given.popleft())
        while given:
            yield self.received(given.popleft())

    def received(self, connection: Connection) -> R:
        """Receive the next result of a worker."""
        try:
            found = connection.recv()
        except (EOFError, OSError) as error:
            place = self.connections.index(connection)
            self.processes[place].join(1)
            raise RunError(
                f"a worker has ended ({how(self.processes[place].exitcode)}): memory, or shared memory (/dev/shm), may "
                "not suffice; the same command goes on with fewer workers, such as --set train.workers=1, or with none"
            ) from error
        if isinstance(found, HeedfulError):
            raise found
        return found

    def close(self) -> None:
        """End the workers at once."""
        for process in self.processes:
            process.kill()
        for process, connection in zip(self.processes, self.connections, strict=True):
            process.join()
            connection.close()
        self.processes, self.connections = [], []


OPEN: WeakSet[Workers[Any, Any]] = WeakSet()


@atexit.register
def close_all() -> None:
    """End the workers that an error has left behind: Python waits for them at its exit."""
    for workers in OPEN:
        workers.close()


def serve(function: Callable[[T], R], connection: Connection, of_parent: Sequence[Connection]) -> None:
    """Compute a function of all items that come through a connection, in a worker, until the other end is closed."""
    for inherited in of_parent:
        inherited.close()  # else no worker would notice the end of the process
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_IGN)  # the process handles it, for its workers too
    torch.set_num_threads(1)
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            found = function(item)
        except HeedfulError as error:
            found = error
        connection.send(found)


def how(exit_code: int | None) -> str:
    """Say how a process ended."""
    return signal.Signals(-exit_code).name if exit_code and exit_code < 0 else f"exit code {exit_code}"
