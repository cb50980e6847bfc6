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

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1")  # which the launcher passes on to all processes

GRACE = "120"  # seconds for a process to finish an update and save after a signal; before torch 2.12, it has only 30


def launch(command: Sequence[str], processes: int) -> int:
    """Run a command in several processes at once, as `torchrun --standalone` does; return its exit code.

    A signal such as SIGTERM or Ctrl-C reaches all processes. If one process fails, the others are stopped.
    """
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed.elastic"):  # each process reports its own errors
            logging.getLogger(name).setLevel(logging.CRITICAL)
    # After a signal, a process finishes its update and saves, which may take longer than torchrun waits by default.
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", GRACE)
    program, *arguments = command
    with restored_handlers() as signals, named_launcher(), TemporaryDirectory() as logs:
        # Port 0 is any free port, so that several runs can train on one machine. Restarts are off, since the same
        # command resumes the run.
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
            # A negative exit code is a negated signal number; a shell expects 128 plus this number instead.
            if failure.exitcode > 0:
                return failure.exitcode
            name = signal.Signals(-failure.exitcode).name
            sys.stderr.write(f"heedful: process {rank} was ended by {name}; the same command resumes the run\n")
            return 128 - failure.exitcode
    return 0


@contextmanager
def named_launcher() -> Iterator[None]:
    """Tell the processes started in the block, through an environment variable, that this process launched them."""
    before = os.environ.get(LAUNCHED_BY)
    os.environ[LAUNCHED_BY] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[LAUNCHED_BY]
        os.environ |= {LAUNCHED_BY: before} if before else {}


@contextmanager
def restored_handlers() -> Iterator[list[str]]:
    """Restore signal handlers after the block; yield the names of the signals that are not ignored.

    Under nohup, for example, SIGHUP is ignored.
    """
    before = {name: signal.getsignal(getattr(signal, name)) for name in SIGNALS if hasattr(signal, name)}
    try:
        yield [name for name, handler in before.items() if handler is not signal.SIG_IGN]
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)
