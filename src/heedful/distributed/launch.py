"""Start a command in several processes on this machine, with torchrun."""

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from heedful.distributed.reducer import LAUNCHED_BY

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1")  # that all processes get from the one that starts them

GRACE = "120"  # seconds for a process to finish an update and save after a signal; before torch 2.12 they are 30


def launch(command: Sequence[str], processes: int) -> int:
    """Run a command in several processes at once, as `torchrun --standalone` does; return its exit code.

    A signal such as SIGTERM or Ctrl-C reaches all processes; if one of them fails, the others are stopped.
    """
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed.elastic"):  # each process speaks for itself
            logging.getLogger(name).setLevel(logging.CRITICAL)
    # A process finishes its update and saves after a signal, which may take longer than torchrun would wait.
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", GRACE)
    program, *arguments = command
    with handlers_kept() as signals, named_to_processes(), TemporaryDirectory() as logs:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id="heedful",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=logs),
            signals_to_handle=",".join(signals),
        )
        try:
            elastic_launch(config, program)(*arguments)
        except SignalException as error:
            return 128 + error.sigval
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            if failure.exitcode > 0:
                return failure.exitcode
            name = signal.Signals(-failure.exitcode).name
            sys.stderr.write(f"heedful: process {rank} was ended by {name}; the same command goes on\n")
            return 128 - failure.exitcode
    return 0


@contextmanager
def named_to_processes() -> Iterator[None]:
    """Name this process as the launcher to those that are started in the block."""
    before = os.environ.get(LAUNCHED_BY)
    os.environ[LAUNCHED_BY] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[LAUNCHED_BY]
        os.environ |= {LAUNCHED_BY: before} if before else {}


@contextmanager
def handlers_kept() -> Iterator[list[str]]:
    """Restore the handlers of signals at the end; give the names of those signals that are not ignored, as by nohup."""
    before = {name: signal.getsignal(getattr(signal, name)) for name in SIGNALS if hasattr(signal, name)}
    try:
        yield [name for name, handler in before.items() if handler is not signal.SIG_IGN]
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
