"""Data parallelism: what the processes of a training do together, and what that is to a single one.

`Reducer` is the interface; `SINGLE_PROCESS` is one process, `ProcessGroup` several of torch.distributed, and
`ShardedGroup` several that share the weights as well.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count, islice
from typing import Any, NoReturn, Protocol, TypeVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from heedful.config.schema import ParallelConfig
from heedful.errors import HeedfulError, InputError, Interrupted, RunError

T = TypeVar("T")


class Exchange(Protocol):
    """Exchange of JSON values between processes, of which all call the same methods in the same order."""

    rank: int
    world_size: int

    def all_gather(self, value: Any) -> list[Any]: ...

    def broadcast_object(self, function: Callable[[], T]) -> T: ...


class Reducer(ABC):
    """Reducer of a process: chooses which part of the work is its own, and sums what all processes computed.

    All processes call the same methods in the same order, and get the same results.

    Attributes:
        rank: The number of this process, from 0 to `world_size` - 1.
        world_size: The number of processes.
        mesh: The device mesh over which the weights are sharded; None: each process has all weights.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self.mesh: DeviceMesh | None = None

    @property
    def is_rank_zero(self) -> bool:
        """True in the process that writes the files of the run and prints."""
        return self.rank == 0

    @property
    def saves(self) -> bool:
        """True in a process that writes a part of each checkpoint."""
        return self.is_rank_zero

    def pad_to_world_size(self, items: Sequence[T]) -> list[T]:
        """List the items of one update, with repetitions at the end if every process needs as many as the others."""
        return list(items)

    def shard(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over the items of this process: every `world_size`-th, beginning at its rank."""
        return islice(items, self.rank, None, self.world_size)

    @abstractmethod
    def all_gather(self, value: Any) -> list[Any]:
        """Collect a JSON value of each process, in the order of their ranks."""

    def all_gather_in_order(self, own: Sequence[T]) -> list[T]:
        """Collect what all processes made of their items, JSON values, in the order of the items before `shard`.

        Sums over the result do not depend on the number of processes.
        """
        lists = self.all_gather(list(own))
        return [one[place] for place in range(len(lists[0])) for one in lists if place < len(one)]

    @abstractmethod
    def broadcast_object(self, function: Callable[[], T]) -> T:
        """Call a function in the process of rank zero only, and give its JSON value to all processes."""

    @abstractmethod
    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Give the tensors of rank zero to all; what the others pass is left unread."""

    @abstractmethod
    def rank_zero_first(self, function: Callable[[], T]) -> T:
        """Call a function in the process of rank zero, then in one process of each other machine, then in all others.

        So what the first call writes is there for the others to read.
        """

    @abstractmethod
    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradient of each parameter over all processes, in place.

        A gradient that is None in some processes counts as zeros there; one that is None in all of them stays None.
        """

    @abstractmethod
    def for_a_thread(self) -> Exchange:
        """Make an exchange between the same processes for another thread; all processes must call this."""


class SingleProcess(Reducer):
    """Reducer of a training in a single process: all work is its own, and sums are what it computed."""

    def __init__(self) -> None:
        super().__init__(rank=0, world_size=1)

    def all_gather(self, value: Any) -> list[Any]:
        return [value]

    def broadcast_object(self, function: Callable[[], T]) -> T:
        return function()

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(tensors)

    def rank_zero_first(self, function: Callable[[], T]) -> T:
        return function()

    def sum_gradients(self, model: nn.Module) -> None:
        """Leave the gradients unchanged."""

    def for_a_thread(self) -> Exchange:
        return self


SINGLE_PROCESS = SingleProcess()

PATIENCE = 24 * 60 * 60.0  # seconds that processes wait while others prepare data
SILENCE = 5.0  # seconds before a process reports an error that is not its own, or not its own alone
BUCKET = 1 << 23  # elements that are summed at once: few calls, and little memory next to the gradients
LAUNCHED_BY = "HEEDFUL_LAUNCHED_BY"  # variable with the launcher of a process, which may end before the process looks
LAUNCHER = int(os.environ.get(LAUNCHED_BY, os.getppid()))  # the process that has started this one
TRAININGS = count(1)  # each training of a process has its own keys in the store
NONE, DENSE, SPARSE = range(3)  # kinds of a gradient


@contextmanager
def meeting(seconds: float) -> Iterator[None]:
    """Context manager of a call in which all processes meet; a process that takes longer to the next one ends.

    It writes its stack first. Meetings are not nested: the end of the inner one would start the clock within the outer
    one, in which torch.distributed watches each of its calls.
    """
    faulthandler.cancel_dump_traceback_later()
    yield
    faulthandler.dump_traceback_later(seconds, exit=True)


def as_bytes(value: Any) -> Tensor:
    """Encode a JSON value as a tensor of bytes; numbers come back to the last bit, NaN too."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def from_bytes(text: Tensor) -> Any:
    return json.loads(text.numpy().tobytes())


def all_gather_json(value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """Collect a JSON value of each process; JSON, since the object collectives of torch.distributed run pickles."""
    text = as_bytes(value)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, torch.tensor([len(text)]), group)

    # all_gather needs tensors of one shape: texts are padded to the longest one
    longest = max(int(size) for size in sizes)
    texts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(texts, F.pad(text, (0, longest - len(text))), group)
    return [from_bytes(text[: int(size)]) for text, size in zip(texts, sizes, strict=True)]


def broadcast_json(function: Callable[[], T], group: dist.ProcessGroup | None = None) -> T:
    """Call a function in the process of rank zero, and give its JSON value to all processes."""
    is_rank_zero = dist.get_rank(group) == 0
    text = as_bytes(function()) if is_rank_zero else torch.empty(0, dtype=torch.uint8)
    size = torch.tensor([len(text)])
    dist.broadcast(size, 0, group)
    text = text if is_rank_zero else torch.empty(int(size), dtype=torch.uint8)
    dist.broadcast(text, 0, group)
    return from_bytes(text)


class ThreadExchange:
    """Exchange in a thread next to the training; the others wait for this process as long as in training."""

    def __init__(self, seconds: float) -> None:
        group = dist.new_group(backend="gloo", timeout=timedelta(seconds=seconds))
        assert isinstance(group, dist.ProcessGroup)
        self.group = group
        self.seconds = seconds
        self.rank = dist.get_rank(group)
        self.world_size = dist.get_world_size(group)

    def all_gather(self, value: Any) -> list[Any]:
        with meeting(self.seconds):
            return all_gather_json(value, self.group)

    def broadcast_object(self, function: Callable[[], T]) -> T:
        with meeting(self.seconds):
            return broadcast_json(function, self.group)


class ProcessGroup(Reducer):
    """Reducer over the default process group of torch.distributed: gloo for the CPU, NCCL for GPUs.

    A process that does not meet the others in time writes its stack to standard error, and ends.

    Args:
        store: Holds what the machines report to each other outside of the process group.
        seconds: The time that the others wait for a process.
    """

    def __init__(self, store: Store, seconds: float) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size())
        self.store = store
        self.seconds = seconds
        self.steps = 0  # calls of `rank_zero_first`

    def all_gather(self, value: Any) -> list[Any]:
        with meeting(self.seconds):
            return all_gather_json(value)

    def broadcast_object(self, function: Callable[[], T]) -> T:
        with meeting(self.seconds):
            return broadcast_json(function)

    def for_a_thread(self) -> Exchange:
        return ThreadExchange(self.seconds)

    def rank_zero_first(self, function: Callable[[], T]) -> T:
        """Call a function in the first process, then in one process of each other machine, then in all others.

        The processes wait for each other at the end: one machine may take long, such as to prepare data.

        Raises:
            RunError: one of the machines takes longer than `PATIENCE`.
        """
        with meeting(self.seconds):
            self.steps += 1
            machine, leads = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_RANK"]) == 0
            if not self.is_rank_zero:
                self.wait_for(0 if leads else machine)
            value = function()
            if leads:
                self.store.set(f"{self.steps} {machine}", "done")
            for other in range(int(os.environ["GROUP_WORLD_SIZE"])):
                self.wait_for(other)
            return value

    def wait_for(self, machine: int) -> None:
        """Wait until a machine is done with its part of `rank_zero_first`; a signal can end the wait."""
        end = time.monotonic() + PATIENCE
        while not self.store.check([f"{self.steps} {machine}"]):
            if time.monotonic() > end:
                raise RunError(f"machine {machine} of the training is not ready after {PATIENCE / 3600:g} hours")
            time.sleep(0.1)

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Give the tensors of the first process to all, on the CPU; what the others pass is left unread."""
        with meeting(self.seconds):
            facts = broadcast_json(lambda: {name: [str(t.dtype), list(t.shape)] for name, t in tensors.items()})
            copies = {}
            for name, (dtype, shape) in facts.items():
                kind = getattr(torch, dtype.removeprefix("torch."))
                copies[name] = tensors[name].cpu().contiguous() if self.is_rank_zero else torch.empty(shape, dtype=kind)
                dist.broadcast(copies[name], 0)
            return copies

    @torch.no_grad()
    def sum_gradients(self, model: nn.Module) -> None:
        with meeting(self.seconds):
            # A parameter may have a gradient in some processes only, and all have to make the same calls.
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

            # One call for many small gradients: each has a fixed cost.
            for bucket in buckets(dense):
                flat = torch.cat([grad.flatten() for grad in bucket])
                dist.all_reduce(flat)
                for grad, part in zip(bucket, flat.split([grad.numel() for grad in bucket]), strict=True):
                    grad.copy_(part.view_as(grad))

    def sum_rows(self, parameter: nn.Parameter) -> Tensor:
        """Sum the sparse gradient of an embedding over all processes, in the order of their ranks."""
        total = torch.zeros_like(parameter, layout=torch.sparse_coo)
        own = total if parameter.grad is None else parameter.grad
        # Processes have different numbers of rows, so that each sends its own to all; one order gives the same bits.
        for rank, size in enumerate(all_gather_json(own._nnz())):
            is_own = rank == self.rank
            rows = own._indices().contiguous() if is_own else own._indices().new_empty(1, size)
            values = own._values().contiguous() if is_own else parameter.new_empty(size, *parameter.shape[1:])
            dist.broadcast(rows, rank)
            dist.broadcast(values, rank)
            grad = torch.sparse_coo_tensor(rows, values, parameter.shape, check_invariants=False)
            total = total + grad if rank else grad
        return total


def kind_of(grad: Tensor | None) -> int:
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


class ShardedGroup(ProcessGroup):
    """Process group whose processes share the weights as well (FSDP2, HSDP), and not only the batches.

    Args:
        store: Holds what the machines report to each other outside of the process group.
        seconds: The time that the others wait for a process.
        holders: The number of processes that hold a copy of the weights together; each further group of as many has
            another copy.
        device: "cpu" or "cuda".
    """

    def __init__(self, store: Store, seconds: float, holders: int, device: str) -> None:
        super().__init__(store, seconds)
        if self.world_size % holders:
            raise InputError(
                f"{self.world_size} processes cannot be divided into groups of {holders} that share the weights: "
                'choose another number of processes or parallel.shard_processes, or parallel.shard = "full"'
            )
        copies = self.world_size // holders
        self.mesh = (
            init_device_mesh(device, (holders,), mesh_dim_names=("shard",))
            if copies == 1
            else init_device_mesh(device, (copies, holders), mesh_dim_names=("replicate", "shard"))
        )

    @property
    def saves(self) -> bool:
        return True  # its rows of the weights

    def pad_to_world_size(self, items: Sequence[T]) -> list[T]:
        # A process without a batch would not gather the weights for the others, which would wait for ever.
        return [*items, *[items[-1]] * (-len(items) % self.world_size)]

    def sum_gradients(self, model: nn.Module) -> None:
        """Leave the gradients unchanged: the backward pass has summed them, and given each process its rows."""


@contextmanager
def join_process_group(
    minutes: float, device: str = "auto", group: Callable[[Store, float], Reducer] = ProcessGroup
) -> Iterator[Reducer]:
    """Join the processes that torchrun has started with this one; without torchrun it is a single process.

    A process that fails stays in the group until it ends: so torchrun sees its exit code before those of the others.
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
        # an error of gloo or NCCL: another process has ended, or does not answer
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        time.sleep(SILENCE)
        reason = str(error).splitlines()[0]
        raise RunError(f"process {rank} gets no answer from the others ({reason}); the same command goes on") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


@contextmanager
def ending_with_launcher() -> Iterator[None]:
    """Context manager that ends this process if what started it was killed, whose store torch would wait for."""
    has_joined = threading.Event()

    def watch() -> None:
        while not has_joined.wait(1.0):
            if launcher_has_ended():
                sys.stderr.write("heedful: the process that started this one was killed; the same command goes on\n")
                end_process(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        has_joined.set()


def of_torchrun() -> bool:
    return dist.is_torchelastic_launched()


def launcher_has_ended() -> bool:
    """True in a process of torchrun that was left behind: what started it was killed."""
    return of_torchrun() and os.getppid() != LAUNCHER


def is_rank_zero() -> bool:
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
    if not is_rank_zero():
        time.sleep(SILENCE)
    if is_rank_zero() or not isinstance(error, Interrupted):
        sys.stderr.write(error.line())
    end_process(error.exit_code)


def end_process(code: int) -> NoReturn:
    """End a process of a group with an exit code, at once: threads of gloo may abort one that ends by itself."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def kind_of_group(config: ParallelConfig, device: str) -> Callable[[Store, float], Reducer]:
    """Choose what makes the reducer of several processes: one that shares the weights, if the recipe says so."""
    if config.shard == "none":
        return ProcessGroup

    def sharded(store: Store, seconds: float) -> Reducer:
        together = int(os.environ["WORLD_SIZE" if config.shard == "full" else "LOCAL_WORLD_SIZE"])
        mesh_device = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
        return ShardedGroup(store, seconds, config.shard_processes or together, mesh_device)

    return sharded
