"""Worker processes that compute the results of a function ahead of time, on other cores.

Workers are forked on Linux, unless the start method of multiprocessing is "spawn". Otherwise they are spawned, and
receive the function through a pipe.
"""

import atexit
import gc
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

AHEAD = 2  # items sent to each worker ahead of time
MAX_FOLDER_BYTES = 75  # of a folder's path: Linux allows 107 for a socket's path, of which the socket's name takes 32

T = TypeVar("T")
R = TypeVar("R")


def can_have_workers() -> bool:
    """Return True unless this process is a daemon, which cannot have children."""
    return not multiprocessing.current_process().daemon


def uses_fork() -> bool:
    """Return True if workers are forked: on Linux, unless the start method of multiprocessing is "spawn"."""
    method = multiprocessing.get_start_method(allow_none=True)
    return sys.platform == "linux" and hasattr(os, "fork") and method != "spawn"


def map_ahead(function: Callable[[T], R], items: Iterable[T], count: int) -> Generator[R]:
    """Map a function over items, in order, with forked workers, or with threads if this process cannot fork workers.

    Threads help if the function mostly waits, or runs native code.
    """
    if uses_fork() and can_have_workers():
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


class Workers(Generic[T, R]):
    """Processes that apply a function to many items, and return the results in the order of the items.

    A forked worker has a copy of this process' memory, so that only items and results are sent; a spawned one also
    receives the function. Tensors are sent through shared memory. A worker uses one thread, and must not use a GPU.
    Items must be small: sending one must not wait for a worker that itself waits to send a large result.

    Args:
        function: The function; its errors are raised here. For spawned workers it must be picklable.
        count: The number of workers, at least 1.

    Raises:
        RunError: the system cannot start more processes.
    """

    def __init__(self, function: Callable[[T], R], count: int) -> None:
        # The folder for the sockets of all workers: its path must be short, so it may be in /tmp or /var/tmp instead of
        # the folder for temporary files. Without a common folder, each worker would create one, and leave it behind.
        default_folder = tempfile.gettempdir()
        folders = (folder for folder in ("/tmp", "/var/tmp") if os.access(folder, os.W_OK))
        tempfile.tempdir = (
            default_folder if len(os.fsencode(default_folder)) <= MAX_FOLDER_BYTES else next(folders, default_folder)
        )
        try:
            get_temp_dir()
        finally:
            tempfile.tempdir = default_folder
        self.owner = os.getpid()
        self.connections: list[Connection] = []
        self.processes: list[BaseProcess] = []
        OPEN.add(self)
        try:
            for _ in range(count):
                self.start(function)
        except OSError as error:
            self.close()
            raise RunError(f"cannot start {counted(count, 'workers')} ({error}); use fewer") from error

    def start(self, function: Callable[[T], R]) -> None:
        forks = uses_fork()
        context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
        parent_end, worker_end = context.Pipe()
        self.connections.append(parent_end)
        signals = [number for number in signal.valid_signals() if callable(signal.getsignal(number))]
        parent_connections = self.connections if forks else []
        collects = gc.isenabled()
        arguments = function, worker_end, parent_connections, signals, collects
        process = context.Process(target=serve, args=arguments, daemon=True)
        # The worker inherits both: no signal can reach it before it ignores them, and it collects no garbage before it
        # has frozen what it inherits.
        gc.disable()
        try:
            with blocked(signals):
                process.start()
        finally:
            if collects:
                gc.enable()
        self.processes.append(process)
        worker_end.close()

    def map(self, items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, while each worker computes up to `AHEAD` results ahead; call this only once.

        Raises:
            Exception: any error of the function.
            RunError: a worker has ended, for example because the system killed it when memory ran short.
        """
        busy: deque[Connection] = deque()  # in the order of their items
        for connection, item in zip(cycle(self.connections), items, strict=False):
            with suppress(OSError):  # the worker has ended, which `receive` reports
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
            code = process.exitcode
            if code is None:
                reason = f"a worker is not responding ({error}); run the same command with fewer workers, or with none"
            elif code >= 0:
                reason = f"a worker exited with code {code}; its error is above"
            else:
                reason = (
                    f"a worker was terminated by {signal.Signals(-code).name}: there is too little memory or shared "
                    "memory (/dev/shm); run the same command with fewer workers, such as --set train.workers=1, or "
                    "with none"
                )
            raise RunError(reason) from error
        if isinstance(result, Failure):
            raise result.error
        return result

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        for connection in self.connections:
            connection.close()
        self.processes, self.connections = [], []


@contextmanager
def blocked(signals: Iterable[int]) -> Iterator[None]:
    """Block signals in this thread and the processes that it starts; do nothing on Windows."""
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
    """Kill workers that are still running after an error, because Python would wait for them on exit."""
    for workers in OPEN:
        if workers.owner == os.getpid():
            workers.close()


class Failure(NamedTuple):
    """Exception that the function raised, sent instead of its result."""

    error: Exception


def serve(
    function: Callable[[T], R],
    connection: Connection,
    parent_connections: Sequence[Connection],
    signals: Sequence[int],
    collects: bool,
) -> None:
    """Run the loop of a worker: apply the function to each item from a connection, until the other end is closed."""
    # Objects of the parent must not be destroyed here: the destructor of a CTranslate2 model, for example, would wait
    # forever for threads that a forked process does not have.
    gc.freeze()
    if collects:
        gc.enable()
    for inherited in parent_connections:
        inherited.close()  # otherwise no worker would notice the end of the parent
    signal.set_wakeup_fd(-1)
    for number in signals:
        signal.signal(number, signal.SIG_IGN)  # the parent handles it, for its workers too
    torch.set_num_threads(1)
    with suppress(EOFError, ConnectionError):  # the parent has ended
        while True:
            answer(connection, function, connection.recv())


def answer(connection: Connection, function: Callable[[T], R], item: T) -> None:
    """Send the result for an item, or its error.

    This is a separate function so that the worker keeps no result while it waits for the next item.
    """
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
        connection.send(Failure(RunError(f"a worker failed: {result.error!r}")))
