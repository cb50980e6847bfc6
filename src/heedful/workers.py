"""Workers: processes that compute a function ahead of this one, on other cores.

They are copies of this process on Linux, and new processes elsewhere, to which the function is sent.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.util import get_temp_dir
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

import torch

from heedful.errors import HeedfulError, RunError
from heedful.wording import counted

AHEAD = 2  # items that each worker is given at a time
MAX_FOLDER_BYTES = 75  # of its name: Linux allows a socket 107, of which its own name takes 32

T = TypeVar("T")
R = TypeVar("R")


def can_have_workers() -> bool:
    """True unless this process is a daemon, which may have no children."""
    return not multiprocessing.current_process().daemon


def copies_processes() -> bool:
    """True if workers are copies of this process: on Linux, unless the start method of multiprocessing is "spawn"."""
    method = multiprocessing.get_start_method(allow_none=True)
    return sys.platform == "linux" and hasattr(os, "fork") and method != "spawn"


def map_ahead(function: Callable[[T], R], items: Iterable[T], count: int) -> Generator[R]:
    """Map a function over items, results in their order: in workers that are copies of this process, or in threads.

    Threads help where the function mostly waits, or runs code that is not Python.
    """
    if copies_processes() and can_have_workers():
        with closing(Workers(function, count)) as workers:
            yield from workers.map(items)
        return
    futures: deque[Future[R]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for item in items:
            futures.append(pool.submit(function, item))
            if len(futures) > AHEAD * count:
                yield futures.popleft().result()
        yield from (future.result() for future in futures)


def make_folder_of_sockets() -> None:
    """Make the folder for the sockets of all workers, where its name is short enough for them.

    That is below the folder for temporary files, else below /tmp or /var/tmp. A worker would make one of its own, and
    leave it behind.
    """
    usual = tempfile.gettempdir()
    folders = (folder for folder in ("/tmp", "/var/tmp") if os.access(folder, os.W_OK))
    tempfile.tempdir = usual if len(os.fsencode(usual)) <= MAX_FOLDER_BYTES else next(folders, usual)
    try:
        get_temp_dir()
    finally:
        tempfile.tempdir = usual


class Workers(Generic[T, R]):
    """Processes that compute a function of many items, and give the results in the order of the items.

    A copy of this process knows what it knows at its creation, so that nothing but items and results is sent; to a new
    process the function is sent as well. Tensors come through shared memory. A worker computes with one thread, and
    must not use a GPU. Items are small: their sending must not wait for a worker that waits to send a large result.

    Args:
        function: the function; what it raises is raised here. Where processes are not copied it can be pickled.
        count: the number of workers, at least 1.

    Raises:
        RunError: the system makes no more processes.
    """

    def __init__(self, function: Callable[[T], R], count: int) -> None:
        make_folder_of_sockets()
        self.owner = os.getpid()
        self.connections: list[Connection] = []
        self.processes: list[BaseProcess] = []
        OPEN.add(self)
        try:
            for _ in range(count):
                self.start(function)
        except OSError as error:
            self.close()
            raise RunError(f"no {counted(count, 'workers')} can be started ({error}); begin with fewer") from error

    def start(self, function: Callable[[T], R]) -> None:
        """Start one more worker."""
        forks = copies_processes()
        context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        self.connections.append(here)
        signals = [number for number in signal.valid_signals() if callable(signal.getsignal(number))]
        of_parent = self.connections if forks else []
        process = context.Process(target=serve, args=(function, there, of_parent, signals), daemon=True)
        with blocked(signals):  # a new process blocks them too, until it ignores them
            process.start()
        self.processes.append(process)
        there.close()

    def map(self, items: Iterable[T]) -> Iterator[R]:
        """Compute the function of each item, and meanwhile of the next ones, `AHEAD` for each worker; call it once.

        Raises:
            Exception: as the function does.
            RunError: a worker has ended, as the system ends one when memory runs short.
        """
        busy: deque[Connection] = deque()  # in the order of their items
        for connection, item in zip(cycle(self.connections), items, strict=False):
            with suppress(OSError):  # the worker has ended, as is noticed where its result is received
                connection.send(item)
            busy.append(connection)
            if len(busy) > AHEAD * len(self.connections):
                yield self.receive(busy.popleft())
        while busy:
            yield self.receive(busy.popleft())

    def receive(self, connection: Connection) -> R:
        try:
            result = connection.recv()
        except (EOFError, OSError, RuntimeError) as error:
            process = self.processes[self.connections.index(connection)]
            process.join(1)
            raise RunError(reason(process.exitcode, error)) from error
        if isinstance(result, Failure):
            raise result.error
        return result

    def close(self) -> None:
        """End the workers at once."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        for connection in self.connections:
            connection.close()
        self.processes, self.connections = [], []


@contextmanager
def blocked(signals: Iterable[int]) -> Iterator[None]:
    """Block signals within the `with` block, for this thread and the processes that it starts; Windows cannot."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


OPEN: WeakSet[Workers[Any, Any]] = WeakSet()


@atexit.register
def close_all() -> None:
    """End the workers that an error has left running: Python waits for them at its exit."""
    for workers in OPEN:
        if workers.owner == os.getpid():
            workers.close()


class Failure(NamedTuple):
    """Result of a function that has raised an error."""

    error: Exception


def serve(
    function: Callable[[T], R], connection: Connection, of_parent: Sequence[Connection], signals: Sequence[int]
) -> None:
    """Compute a function of all items that come through a connection, in a worker, until the other end is closed."""
    for inherited in of_parent:
        inherited.close()  # else no worker would notice the end of the process
    signal.set_wakeup_fd(-1)
    for number in signals:
        signal.signal(number, signal.SIG_IGN)  # the process handles it, for its workers too
    torch.set_num_threads(1)
    with suppress(EOFError, ConnectionError):  # the process has ended
        while True:
            answer(connection, function, connection.recv())


def answer(connection: Connection, function: Callable[[T], R], item: T) -> None:
    """Send the function of an item, or the error that it raises."""
    try:
        result = function(item)
    except HeedfulError as error:
        result = Failure(error)
    except Exception as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        result = Failure(error)
    try:
        connection.send(result)
    except Exception:  # not every error can be sent
        if not isinstance(result, Failure):
            raise
        connection.send(Failure(RunError(f"a worker has failed: {result.error!r}")))


def reason(exit_code: int | None, error: Exception) -> str:
    """Explain why there is no result of a worker: it has ended by a signal of the system, by itself, or lives."""
    if exit_code is None:
        return f"a worker gives no result ({error}); the same command goes on with fewer workers, or with none"
    if exit_code >= 0:
        return f"a worker has ended with exit code {exit_code}; its error stands above"
    return (
        f"a worker has ended by {signal.Signals(-exit_code).name}: memory, or shared memory (/dev/shm), does not "
        "suffice; the same command goes on with fewer workers, such as --set train.workers=1, or with none"
    )
