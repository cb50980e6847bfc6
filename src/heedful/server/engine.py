"""Engine of a server: loaded models by name, and the worker thread that runs jobs on them, one at a time."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Event, Lock
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from heedful.checkpoint import LoadedModel
from heedful.checkpoint.ensemble import load_ensemble
from heedful.errors import InputError, RunError
from heedful.nn.named_stacks import stacks

POLL = 0.1  # seconds after which a waiting job checks again whether its caller is gone

T = TypeVar("T")


class BusyError(RunError):
    """Raised if too many jobs are waiting for the worker."""


class CancelledError(RunError):
    """Raised inside a job whose caller no longer waits for the result, or whose worker is closed."""


class Worker:
    """Worker thread that runs jobs one at a time, in the order of arrival.

    Args:
        waiting: Maximum number of waiting jobs.
    """

    def __init__(self, waiting: int = 8) -> None:
        self._max_waiting = waiting
        # `abandon_on_cancel` frees the limiter while the thread of a cancelled job is still running; the lock makes the
        # next job wait until that thread is done.
        self._turn = CapacityLimiter(1)
        self._running = Lock()  # held by a job until it has stopped, even if it is cancelled
        self._cancelled = Event()  # set when the running job is cancelled
        self._closed = Event()

    async def run(self, job: Callable[[], T], *, admitted: bool = False) -> T:
        """Run a job in the worker thread, and return its result.

        If the caller is cancelled, the job never starts, or stops at its next `check`.

        Args:
            job: The job.
            admitted: True to accept the job however many are waiting, because it continues an admitted job.

        Raises:
            BusyError: too many jobs are waiting.
            CancelledError: the worker is closed.
        """
        if not admitted and self._turn.statistics().tasks_waiting >= self._max_waiting:
            raise BusyError(f"{self._max_waiting} requests are waiting; try again in a moment")
        cancelled = Event()
        try:
            return await to_thread.run_sync(
                partial(self._run_alone, job, cancelled), abandon_on_cancel=True, limiter=self._turn
            )
        finally:
            cancelled.set()

    def check(self, *_: object) -> None:
        """Stop the running job if its caller is gone; long computations call this between their steps.

        Raises:
            CancelledError: the job's caller was cancelled, or the worker is closed.
        """
        if self._cancelled.is_set() or self._closed.is_set():
            raise CancelledError("the caller no longer waits for the answer")

    def close(self) -> None:
        """Stop the running job at its next `check`, and start no other job."""
        self._closed.set()

    def _run_alone(self, job: Callable[[], T], cancelled: Event) -> T:
        # An abandoned job ends here, so that cancelled requests do not leave waiting threads.
        while not self._running.acquire(timeout=POLL):
            if cancelled.is_set() or self._closed.is_set():
                raise CancelledError("the caller no longer waits for the answer")
        try:
            self._cancelled = cancelled
            self.check()
            return job()
        finally:
            self._cancelled = Event()
            self._running.release()


class NotFoundError(InputError):
    """Raised if a client names something that the server does not have, such as a model."""


@dataclass(frozen=True)
class ServedModel:
    """A loaded model, with the name by which clients refer to it and the predictor for its task."""

    name: str
    loaded: LoadedModel
    predictor: Any


class Engine(Worker):
    """Loaded models by name, and the worker thread that runs one job on them at a time.

    Args:
        models: The models, by the names that clients use.
    """

    def __init__(self, models: Mapping[str, LoadedModel]) -> None:
        super().__init__()
        self.models = {name: ServedModel(name, loaded, loaded.use()) for name, loaded in models.items()}
        for loaded in models.values():
            self.watch(loaded)

    @classmethod
    def load(cls, systems: Iterable[Sequence[str]], device: str = "cpu") -> "Engine":
        """Load models and ensembles, each given by its folders or bundled names, which also form its name for clients.

        Raises:
            DamagedError: a model file is damaged.
        """
        return cls({" and ".join(names): load_ensemble(names, device) for names in systems})

    def model(self, name: object) -> ServedModel:
        """Return the model that a client names; a name is never interpreted as a path."""
        if not isinstance(name, str) or name not in self.models:
            raise NotFoundError(f"the model {str(name)[:100]!r} does not exist; choose one of {', '.join(self.models)}")
        return self.models[name]

    def watch(self, loaded: LoadedModel) -> None:
        """Let a job stop in the middle of a forward pass if its caller has disconnected."""
        model = loaded.model
        # Check before each block of a stack or, in a model without stacks, before each innermost layer.
        blocks = [block for stack in stacks(model) for block in stack.blocks]
        for module in blocks or [module for module in model.modules() if not list(module.children())]:
            module.register_forward_pre_hook(self.check)

    async def stream(self, steps: Iterator[T]) -> AsyncIterator[T]:
        """Run a computation step by step, each step as a separate job, so that other jobs can run in between."""
        admitted = False
        # A list of at most one step, because a future cannot contain a StopIteration: the empty list is the end.
        while step := await self.run(lambda: list(islice(steps, 1)), admitted=admitted):
            admitted = True
            yield step[0]
