"""The processes that torchrun has started, as a process group of torch.distributed."""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from itertools import count
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from heedful.config.schema import ParallelConfig
from heedful.distributed.reducer import SINGLE_PROCESS, Exchange, Reducer
from heedful.errors import HeedfulError, Interrupted, RunError

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 24 * 60 * 60.0  # seconds that processes wait while others prepare data
SILENCE = 5.0  # seconds before a process tells of an error that is not its own, or not its own alone
BUCKET = 1 << 23  # elements that are summed at once: few calls, and little memory beside the gradients
LAUNCHED_BY = "HEEDFUL_LAUNCHED_BY"  # variable with the launcher of a process, which may end before the process looks
LAUNCHER = int(os.environ.get(LAUNCHED_BY, os.getppid()))  # the process that has started this one
TRAININGS = count(1)  # each training of a process has keys of its own in the store


class Watched(Protocol):
    """Interface of an object with meetings, and the seconds that a process may take from one to the next."""

    seconds: float


W = TypeVar("W", bound=Watched)


def meeting(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """Decorator of a method in which all processes meet: the time until the next meeting is watched.

    A meeting must not call another one, whose end would start the clock inside of it; in a meeting torch.distributed
    watches each of its own calls.
    """

    @wraps(method)
    def watched(self: W, *args: P.args, **kwargs: P.kwargs) -> T:
        faulthandler.cancel_dump_traceback_later()
        result = method(self, *args, **kwargs)
        faulthandler.dump_traceback_later(self.seconds, exit=True)
        return result

    return watched


class GroupExchange:
    """Exchange of JSON values between the processes of a group of torch.distributed.

    Args:
        group: The process group; None: the default one, of all processes.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.world_size = dist.get_world_size(group)

    @property
    def is_first(self) -> bool:
        """True in the process of rank 0."""
        return self.rank == 0

    def gather(self, value: Any) -> list[Any]:
        """Collect a JSON value of each process, in the order of their ranks."""
        text = as_bytes(value)
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world_size)]
        dist.all_gather(sizes, torch.tensor([len(text)]), self.group)
        longest = max(int(size) for size in sizes)
        parts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
        dist.all_gather(parts, torch.nn.functional.pad(text, (0, longest - len(text))), self.group)
        return [from_bytes(part[: int(size)]) for part, size in zip(parts, sizes, strict=True)]

    def from_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process only, and give its JSON value to all processes."""
        text = as_bytes(function()) if self.is_first else torch.empty(0, dtype=torch.uint8)
        size = torch.tensor([len(text)])
        dist.broadcast(size, 0, self.group)
        told = text if self.is_first else torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(told, 0, self.group)
        return from_bytes(told)


def as_bytes(value: Any) -> Tensor:
    """Encode a JSON value as a tensor of bytes; numbers come back to the last bit, NaN too."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def from_bytes(text: Tensor) -> Any:
    """Decode a JSON value from a tensor of bytes."""
    return json.loads(text.numpy().tobytes())


class WatchedExchange(GroupExchange):
    """Exchange in a thread beside the training; the others wait for this process as long as in training.

    Args:
        seconds: The time that the others wait for a process.
    """

    def __init__(self, seconds: float) -> None:
        group = dist.new_group(backend="gloo", timeout=timedelta(seconds=seconds))
        assert isinstance(group, dist.ProcessGroup)
        super().__init__(group)
        self.seconds = seconds

    @meeting
    def gather(self, value: Any) -> list[Any]:
        """Collect a JSON value of each process, in the order of their ranks."""
        return super().gather(value)

    @meeting
    def from_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process only, and give its JSON value to all processes."""
        return super().from_first(function)


class ProcessGroup(Reducer):
    """Reducer over the default process group of torch.distributed: gloo for the CPU, NCCL for GPUs.

    A process that does not meet the others in time writes its stack to standard error, and ends.

    Args:
        store: Holds what the machines tell each other outside of the process group.
        seconds: The time that the others wait for a process.
    """

    def __init__(self, store: Store, seconds: float) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size())
        self.exchange = GroupExchange()
        self.store = store
        self.seconds = seconds
        self.steps = 0  # calls of `after_first`

    @meeting
    def gather(self, value: Any) -> list[Any]:
        """Collect a JSON value of each process, in the order of their ranks."""
        return self.exchange.gather(value)

    @meeting
    def from_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process only, and give its JSON value to all processes."""
        return self.exchange.from_first(function)

    def for_a_thread(self) -> Exchange:
        """Make an exchange between the same processes for another thread; all processes must call this."""
        return WatchedExchange(self.seconds)

    @meeting
    def after_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process, then in one process of each other machine, then in all others.

        The processes wait for each other at the end: one machine may take long, such as to prepare data.

        Raises:
            RunError: one of the machines takes longer than `PATIENCE`.
        """
        self.steps += 1
        machine, leads = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_RANK"]) == 0
        if not self.is_first:
            self.wait_for(0 if leads else machine)
        value = function()
        if leads:
            self.store.set(f"{self.steps} {machine}", "done")
        for other in range(int(os.environ["GROUP_WORLD_SIZE"])):
            self.wait_for(other)
        return value

    def wait_for(self, machine: int) -> None:
        """Wait until a machine is done with its part of `after_first`; a signal can end the wait."""
        end = time.monotonic() + PATIENCE
        while not self.store.check([f"{self.steps} {machine}"]):
            if time.monotonic() > end:
                raise RunError(f"machine {machine} of the training is not ready after {PATIENCE / 3600:g} hours")
            time.sleep(0.1)

    @meeting
    def tensors_from_first(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Give the tensors of the first process to all, on the CPU; what the others pass is left unread."""
        facts = self.exchange.from_first(lambda: {name: [str(t.dtype), list(t.shape)] for name, t in tensors.items()})
        found = {}
        for name, (dtype, shape) in facts.items():
            kind = getattr(torch, dtype.removeprefix("torch."))
            found[name] = tensors[name].cpu().contiguous() if self.is_first else torch.empty(shape, dtype=kind)
            dist.broadcast(found[name], 0)
        return found

    @meeting
    @torch.no_grad()
    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradient of each parameter over all processes, in place."""
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        kinds = torch.tensor([kind_of(parameter.grad) for parameter in parameters], dtype=torch.uint8)
        dist.all_reduce(kinds, dist.ReduceOp.MAX)
        dense = []
        for parameter, kind in zip(parameters, kinds.tolist(), strict=True):
            if kind == DENSE:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                dense.append(parameter.grad)
            elif kind == SPARSE:
                parameter.grad = self.sum_rows(parameter)
        for bucket in buckets(dense):
            joined = torch.cat([grad.flatten() for grad in bucket])
            dist.all_reduce(joined)
            for grad, part in zip(bucket, joined.split([grad.numel() for grad in bucket]), strict=True):
                grad.copy_(part.view_as(grad))

    def sum_rows(self, parameter: nn.Parameter) -> Tensor:
        """Sum the sparse gradient of an embedding over all processes, in the order of their ranks."""
        total = torch.zeros_like(parameter, layout=torch.sparse_coo)
        own = total if parameter.grad is None else parameter.grad
        for rank, size in enumerate(self.exchange.gather(own._nnz())):
            mine = rank == self.rank
            rows = own._indices().contiguous() if mine else own._indices().new_empty(1, size)
            values = own._values().contiguous() if mine else parameter.new_empty(size, *parameter.shape[1:])
            dist.broadcast(rows, rank)
            dist.broadcast(values, rank)
            told = torch.sparse_coo_tensor(rows, values, parameter.shape, check_invariants=False)
            total = total + told if rank else told
        return total


NONE, DENSE, SPARSE = range(3)  # kinds of a gradient


def kind_of(grad: Tensor | None) -> int:
    """The kind of a gradient: `NONE`, `DENSE` or `SPARSE`."""
    return NONE if grad is None else SPARSE if grad.is_sparse else DENSE


def buckets(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Split tensors into lists of at most `BUCKET` elements, or of one larger tensor, in their order."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(one.numel() for one in bucket) + tensor.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


@contextmanager
def join_process_group(
    minutes: float, device: str = "auto", group: Callable[[Store, float], Reducer] = ProcessGroup
) -> Iterator[Reducer]:
    """Join the processes that torchrun has started with this one; without torchrun it is a single process.

    A process that fails stays in the group until it ends: so torchrun sees its exit code before those of the others.

    Args:
        minutes: the time that a process waits for the others before it gives up.
        device: the device that the recipe names; a GPU of its own is chosen for each process unless it is "cpu".
        group: makes the reducer from a store and the seconds that a process waits.

    Raises:
        RunError: another process has ended or does not answer.
    """
    if not of_torchrun():
        yield SINGLE_PROCESS
        return
    backend = "gloo"
    if device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    patience = timedelta(minutes=minutes)
    with ending_with_launcher():
        store, rank, world_size = next(rendezvous("env://", timeout=patience))
        store = PrefixStore(f"heedful {next(TRAININGS)}", store)
        store.set_timeout(patience)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=patience)
    try:
        yield group(PrefixStore("steps", store), 60 * minutes)
    except RuntimeError as error:
        if not of_peers(error):
            raise
        time.sleep(SILENCE)
        raise lost(rank, error) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


@contextmanager
def ending_with_launcher() -> Iterator[None]:
    """Context manager that ends this process if what started it was killed, whose store torch would wait for."""
    joined = threading.Event()

    def watch() -> None:
        while not joined.wait(1.0):
            if launcher_has_ended():
                sys.stderr.write("heedful: the process that started this one was killed; the same command goes on\n")
                end_process(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        joined.set()


def of_peers(error: RuntimeError) -> bool:
    """True for an error of gloo or NCCL: another process has ended, or does not answer."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def lost(rank: int, error: RuntimeError) -> RunError:
    """Make the error of a process that can go no further without the others."""
    reason = str(error).splitlines()[0]
    return RunError(f"process {rank} gets no answer from the others ({reason}); the same command goes on")


def of_torchrun() -> bool:
    """True in a process that torchrun has started."""
    return dist.is_torchelastic_launched()


def launcher_has_ended() -> bool:
    """True in a process of torchrun that was left behind: what started it was killed."""
    return of_torchrun() and os.getppid() != LAUNCHER


def is_first_process() -> bool:
    """True in a process without torchrun, and in the first of those that torchrun has started."""
    return not of_torchrun() or os.environ["RANK"] == "0"


def all_processes() -> int:
    """The number of processes that torchrun has started on all machines; 1 without torchrun."""
    return int(os.environ["WORLD_SIZE"]) if of_torchrun() else 1


def local_processes() -> int:
    """The number of processes that torchrun has started on this machine; 1 without torchrun."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if of_torchrun() else 1


def end_with_error(error: HeedfulError) -> NoReturn:
    """End a process that torchrun has started; the message comes once if the first process has the same error.

    After a signal only the first process reports. The others wait, as a launcher ends all processes once one has ended,
    which would cut off the report.
    """
    if not is_first_process():
        time.sleep(SILENCE)
    if is_first_process() or not isinstance(error, Interrupted):
        sys.stderr.write(error.line())
    end_process(error.exit_code)


def end_process(code: int) -> NoReturn:
    """End a process of a group with an exit code, at once: threads of gloo may abort one that ends by itself."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def kind_of_group(config: ParallelConfig, device: str) -> Callable[[Store, float], Reducer]:
    """Choose what makes the reducer of several processes: one that shares the weights, if the recipe says so.

    Args:
        config: the recipe's table.
        device: the device that the recipe names.
    """
    if config.shard == "none":
        return ProcessGroup
    from heedful.distributed.sharded_group import ShardedGroup

    mesh_device = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"

    def sharded(store: Store, seconds: float) -> Reducer:
        together = int(os.environ["WORLD_SIZE" if config.shard == "full" else "LOCAL_WORLD_SIZE"])
        return ShardedGroup(store, seconds, config.shard_processes or together, mesh_device)

    return sharded
