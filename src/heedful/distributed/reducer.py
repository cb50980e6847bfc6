"""Data parallelism: the collective operations of training, in one process or several.

`Reducer` is the interface. `SINGLE_PROCESS` implements it for one process, `ProcessGroup` for several processes of
torch.distributed, and `ShardedGroup` for several that also shard the weights.
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
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from heedful.config.schema import ParallelConfig
from heedful.errors import HeedfulError, InputError, Interrupted, RunError

if TYPE_CHECKING:
    from heedful.distributed.gradient_sums import GradientSums

T = TypeVar("T")


class Reducer(ABC):
    """Interface of data parallelism: shards the work among processes, and sums their results.

    All processes must make the same collective calls in the same order, and get the same results.

    Attributes:
        rank: The number of this process, from 0 to `world_size` - 1.
        world_size: The number of processes.
        mesh: The device mesh over which the weights are sharded; None if each process has all weights.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self.mesh: DeviceMesh | None = None

    @property
    def is_rank_zero(self) -> bool:
        """True in the process that prints messages and writes the run's files."""
        return self.rank == 0

    @property
    def saves(self) -> bool:
        """True in a process that writes a part of each checkpoint."""
        return self.is_rank_zero

    def pad_to_world_size(self, items: Sequence[T]) -> list[T]:
        """Return the items of one update; the last one is repeated if every process needs the same number of items."""
        return list(items)

    def shard(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over the items of this process: every `world_size`-th, beginning with the item at index `rank`."""
        return islice(items, self.rank, None, self.world_size)

    @abstractmethod
    def all_gather(self, value: Any) -> list[Any]:
        """Return the JSON values of all processes, in order of rank."""

    def all_gather_in_order(self, own: Sequence[T]) -> list[T]:
        """Return the JSON values that the processes computed for their items, in the items' order before `shard`.

        So sums over the result do not depend on the number of processes.
        """
        lists = self.all_gather(list(own))
        # `shard` gives items to the processes in turn, beginning with rank zero, whose list is therefore the longest.
        return [values[index] for index in range(len(lists[0])) for values in lists if index < len(values)]

    @abstractmethod
    def broadcast_object(self, function: Callable[[], T]) -> T:
        """Call a function on rank zero only, and broadcast its JSON value to all processes."""

    @abstractmethod
    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Broadcast the tensors of rank zero to all processes, on the CPU; the other ranks' arguments are ignored."""

    @abstractmethod
    def rank_zero_first(self, function: Callable[[], T]) -> T:
        """Call a function on rank zero, then in one process of each other machine, then in all remaining processes.

        So later calls can read what the first one has written. At the end, all processes wait for the slowest machine.

        Raises:
            RunError: One of the machines takes longer than `MAX_PREPARATION` seconds.
        """

    def gradient_sums(self, model: nn.Module) -> "GradientSums | None":
        """Return sums of dense gradients that can begin during a backward pass; None if this reducer has none."""
        del model
        return None

    @abstractmethod
    def sum_gradients(self, model: nn.Module, sums: "GradientSums | None" = None) -> None:
        """Sum the gradient of each parameter over all processes, in place.

        `sums`, from `gradient_sums`, are used if given; they may have begun during the backward pass.

        A gradient that is None in some processes counts as zeros there; one that is None in all of them stays None.
        """

    @abstractmethod
    def for_a_thread(self) -> "Reducer":
        """Create a reducer over the same processes, for exchanging JSON values in another thread.

        All processes must call this method.
        """


class SingleProcess(Reducer):
    """Reducer for training in a single process."""

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

    def sum_gradients(self, model: nn.Module, sums: "GradientSums | None" = None) -> None:
        """Leave the gradients unchanged."""

    def for_a_thread(self) -> Reducer:
        return self


SINGLE_PROCESS = SingleProcess()

MAX_PREPARATION = 24 * 60 * 60.0  # seconds that processes wait while others prepare data
ERROR_DELAY = 5.0  # seconds before a process reports an error that another one may report first
LAUNCHED_BY = "HEEDFUL_LAUNCHED_BY"  # environment variable with the process id of the launcher
# If the launcher was killed before this line, the variable still has its id, but `getppid` returns another process.
LAUNCHER = int(os.environ.get(LAUNCHED_BY, os.getppid()))  # id of the process that has started this one
TRAININGS = count(1)  # each training run in a process has its own keys in the store
NONE, DENSE, SPARSE = range(3)  # kinds of gradients


@contextmanager
def collective(seconds: float) -> Iterator[None]:
    """Wrap a collective call: a process that does not reach the next one in time writes its stack and ends.

    Blocks must not be nested: the end of the inner one would start the clock within the outer one, where
    torch.distributed already has a timeout for each call.
    """
    faulthandler.cancel_dump_traceback_later()
    yield
    # The calls themselves have torch's timeouts; this clock limits the time until the next call.
    faulthandler.dump_traceback_later(seconds, exit=True)


def as_bytes(value: Any) -> Tensor:
    """Encode a JSON value as a tensor of bytes; numbers are exact, including NaN."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def from_bytes(text: Tensor) -> Any:
    return json.loads(text.numpy().tobytes())


def all_gather_json(value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """Return the JSON values of all processes; JSON, since the object collectives of torch.distributed use pickle."""
    text = as_bytes(value)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, torch.tensor([len(text)]), group)

    # all_gather needs tensors of the same shape, so all are padded to the length of the longest one.
    max_size = max(int(size) for size in sizes)
    texts = [torch.zeros(max_size, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(texts, F.pad(text, (0, max_size - len(text))), group)
    return [from_bytes(text[: int(size)]) for text, size in zip(texts, sizes, strict=True)]


def broadcast_json(function: Callable[[], T], group: dist.ProcessGroup | None = None) -> T:
    """Call a function on rank zero only, and broadcast its result, a JSON value, to all processes."""
    is_rank_zero = dist.get_rank(group) == 0
    text = as_bytes(function()) if is_rank_zero else torch.empty(0, dtype=torch.uint8)
    # `broadcast` needs a tensor of the right size in each process, so the size is broadcast first.
    size = torch.tensor([len(text)])
    dist.broadcast(size, 0, group)
    text = text if is_rank_zero else torch.empty(int(size), dtype=torch.uint8)
    dist.broadcast(text, 0, group)
    return from_bytes(text)


class ProcessGroup(Reducer):
    """Reducer over the default process group of torch.distributed: gloo for the CPU, NCCL for GPUs.

    A process that does not join the others in a collective call in time writes its stack to standard error, and ends.

    Args:
        store: Key-value store shared by all machines, for messages outside of the process group.
        seconds: How long a process waits for the others in a collective call.
        group: Process group to use instead of the default one, as `for_a_thread` does.
    """

    def __init__(self, store: Store, seconds: float, group: dist.ProcessGroup | None = None) -> None:
        super().__init__(dist.get_rank(group), dist.get_world_size(group))
        self.store = store
        self.seconds = seconds
        self.group = group
        self.steps = 0  # number of calls to `rank_zero_first`

    def all_gather(self, value: Any) -> list[Any]:
        with collective(self.seconds):
            return all_gather_json(value, self.group)

    def broadcast_object(self, function: Callable[[], T]) -> T:
        with collective(self.seconds):
            return broadcast_json(function, self.group)

    def for_a_thread(self) -> Reducer:
        # Collective calls of a group are matched by their order, which two threads in one group would mix up.
        group = dist.new_group(backend="gloo", timeout=timedelta(seconds=self.seconds))
        assert isinstance(group, dist.ProcessGroup)
        return ProcessGroup(self.store, self.seconds, group)

    def rank_zero_first(self, function: Callable[[], T]) -> T:
        # Messages pass through the store, since preparation may take hours and a collective call would time out.
        with collective(self.seconds):
            self.steps += 1
            machine, is_first_of_machine = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_RANK"]) == 0
            if not self.is_rank_zero:
                self.wait_for(0 if is_first_of_machine else machine)
            value = function()
            if is_first_of_machine:
                self.store.set(f"{self.steps} {machine}", "done")
            for other in range(int(os.environ["GROUP_WORLD_SIZE"])):
                self.wait_for(other)
            return value

    def wait_for(self, machine: int) -> None:
        """Wait until a machine has finished its part of `rank_zero_first`; a signal can end the wait."""
        end = time.monotonic() + MAX_PREPARATION
        while not self.store.check([f"{self.steps} {machine}"]):
            if time.monotonic() > end:
                raise RunError(f"machine {machine} is not ready for training after {MAX_PREPARATION / 3600:g} hours")
            time.sleep(0.1)

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        with collective(self.seconds):
            facts = broadcast_json(lambda: {name: [str(t.dtype), list(t.shape)] for name, t in tensors.items()})
            copies = {}
            # One call for each tensor, because the timeout applies to each call: a slow link must not count as a hang.
            for name, (dtype, shape) in facts.items():
                kind = getattr(torch, dtype.removeprefix("torch."))
                copies[name] = tensors[name].cpu().contiguous() if self.is_rank_zero else torch.empty(shape, dtype=kind)
                dist.broadcast(copies[name], 0)
            return copies

    def gradient_sums(self, model: nn.Module) -> "GradientSums | None":
        from heedful.distributed.gradient_sums import GradientSums

        return GradientSums(parameter for parameter in model.parameters() if parameter.requires_grad)

    @torch.no_grad()
    def sum_gradients(self, model: nn.Module, sums: "GradientSums | None" = None) -> None:
        with collective(self.seconds):
            parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
            missing = sums.wait() if sums else {parameter for parameter in parameters if parameter.grad is None}

            # A parameter may have a gradient in some processes only, but all of them must make the same calls.
            own = [
                NONE if p in missing or p.grad is None else SPARSE if p.grad.is_sparse else DENSE for p in parameters
            ]
            kinds = torch.tensor(own, dtype=torch.uint8)
            dist.all_reduce(kinds, dist.ReduceOp.MAX)
            kind_of = dict(zip(parameters, kinds.tolist(), strict=True))
            for parameter, kind in kind_of.items():
                # If no process has a gradient, the sum is zeros; None makes the optimizer skip the parameter.
                if kind == NONE:
                    parameter.grad = None
                elif kind == SPARSE:
                    parameter.grad = self.sum_rows(parameter)
            if sums is None:
                from heedful.distributed.gradient_sums import GradientSums

                GradientSums(parameter for parameter, kind in kind_of.items() if kind == DENSE).wait()

    def sum_rows(self, parameter: nn.Parameter) -> Tensor:
        """Sum the sparse gradient of an embedding over all processes, in order of rank."""
        total = torch.zeros_like(parameter, layout=torch.sparse_coo)
        own = total if parameter.grad is None else parameter.grad
        # The number of rows differs between processes, so each one broadcasts its rows. All processes sum them in order
        # of rank, which gives the same bits everywhere.
        for rank, size in enumerate(all_gather_json(own._nnz())):
            is_own = rank == self.rank
            rows = own._indices().contiguous() if is_own else own._indices().new_empty(1, size)
            values = own._values().contiguous() if is_own else parameter.new_empty(size, *parameter.shape[1:])
            dist.broadcast(rows, rank)
            dist.broadcast(values, rank)
            grad = torch.sparse_coo_tensor(rows, values, parameter.shape, check_invariants=False)
            total = total + grad if rank else grad
        return total


class ShardedGroup(ProcessGroup):
    """Process group that shards not only the batches, but also the weights (FSDP2, HSDP).

    Args:
        store: Key-value store shared by all machines, for messages outside of the process group.
        seconds: How long a process waits for the others in a collective call.
        holders: The number of processes that together hold one copy of the weights.
        device: "cpu" or "cuda".
    """

    def __init__(self, store: Store, seconds: float, holders: int, device: str) -> None:
        super().__init__(store, seconds)
        if self.world_size % holders:
            raise InputError(
                f"{self.world_size} processes cannot be divided into groups of {holders} that share the weights: "
                'change the number of processes or parallel.shard_processes, or set parallel.shard = "full"'
            )
        # Weights are sharded over the last dimension of the mesh (`rows_of`), and replicated along the first of two.
        copies = self.world_size // holders
        shape, names = ((holders,), ("shard",)) if copies == 1 else ((copies, holders), ("replicate", "shard"))
        self.mesh = init_device_mesh(device, shape, mesh_dim_names=names)

    @property
    def saves(self) -> bool:
        return True  # each process saves its rows of the weights

    def pad_to_world_size(self, items: Sequence[T]) -> list[T]:
        # A process without a batch would not gather the weights, and the others would wait forever.
        return [*items, *[items[-1]] * (-len(items) % self.world_size)]

    def gradient_sums(self, model: nn.Module) -> None:
        """Return None: the backward pass itself sums the gradients."""

    def sum_gradients(self, model: nn.Module, sums: "GradientSums | None" = None) -> None:
        """Leave the gradients unchanged: the backward pass has summed them, and each process holds its rows."""


@contextmanager
def join_process_group(
    minutes: float, device: str = "auto", group: Callable[[Store, float], Reducer] = ProcessGroup
) -> Iterator[Reducer]:
    """Join the processes that torchrun has started with this one; without torchrun, yield `SINGLE_PROCESS`.

    A process that fails stays in the group until it ends, so that torchrun gets its exit code before the others'.
    """
    if not launched_by_torchrun():
        yield SINGLE_PROCESS
        return
    backend = "gloo"
    if device != "cpu" and torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        # JSON values and the tensors of checkpoints are sent from CPU memory, which NCCL does not support.
        backend = "cpu:gloo,cuda:nccl"
    timeout = timedelta(minutes=minutes)
    with ending_with_launcher():
        store, rank, world_size = next(rendezvous("env://", timeout=timeout))
        store = PrefixStore(f"heedful {next(TRAININGS)}", store)
        store.set_timeout(timeout)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout)
    try:
        yield group(PrefixStore("steps", store), 60 * minutes)
    except RuntimeError as error:
        # An error from gloo or NCCL: another process has ended, or does not answer.
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        # Give the process that failed time to report the cause. The launcher usually ends this one in the meantime.
        time.sleep(ERROR_DELAY)
        reason = str(error).splitlines()[0]
        raise RunError(
            f"process {rank} received no reply from the others ({reason}); the same command resumes the run"
        ) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


@contextmanager
def ending_with_launcher() -> Iterator[None]:
    """End this process if its launcher is killed before the block ends, instead of waiting for the launcher's store."""
    has_joined = threading.Event()

    def watch() -> None:
        while not has_joined.wait(1.0):
            if launcher_has_ended():
                cause = "the process that started this one was killed"
                sys.stderr.write(f"heedful: {cause}; the same command resumes the run\n")
                end_process(128 + signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        has_joined.set()


def launched_by_torchrun() -> bool:
    return dist.is_torchelastic_launched()


def launcher_has_ended() -> bool:
    """Return True if torchrun has started this process, and the launcher has ended since."""
    return launched_by_torchrun() and os.getppid() != LAUNCHER


def is_rank_zero() -> bool:
    """Return True on rank zero; a process that torchrun has not started is rank zero."""
    return not launched_by_torchrun() or os.environ["RANK"] == "0"


def num_processes() -> int:
    """Return the number of processes that torchrun has started on all machines; 1 without torchrun."""
    return int(os.environ["WORLD_SIZE"]) if launched_by_torchrun() else 1


def num_local_processes() -> int:
    """Return the number of processes that torchrun has started on this machine; 1 without torchrun."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if launched_by_torchrun() else 1


def end_with_error(error: HeedfulError) -> NoReturn:
    """Print the error of a process that torchrun has started, and end the process.

    The launcher ends all processes once one has ended. Other ranks wait first, so that rank zero can print its message,
    and an error that all ranks have is printed only once. After a signal, only rank zero prints.
    """
    if not is_rank_zero():
        time.sleep(ERROR_DELAY)
    if is_rank_zero() or not isinstance(error, Interrupted):
        sys.stderr.write(error.line())
    end_process(error.exit_code)


def end_process(code: int) -> NoReturn:
    """End a process of a group at once with an exit code: gloo's threads may abort a process that exits normally."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def reducer_factory(config: ParallelConfig, device: str) -> Callable[[Store, float], Reducer]:
    """Return a function that creates a reducer over several processes, with sharded weights if the recipe says so."""
    if config.shard == "none":
        return ProcessGroup

    def sharded(store: Store, seconds: float) -> Reducer:
        holders = int(os.environ["WORLD_SIZE" if config.shard == "full" else "LOCAL_WORLD_SIZE"])
        mesh_device = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
        return ShardedGroup(store, seconds, config.shard_processes or holders, mesh_device)

    return sharded
