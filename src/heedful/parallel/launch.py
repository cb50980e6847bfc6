"""Start a command in several processes on this machine, with torchrun."""

import logging
from collections.abc import Sequence

from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def launch(command: Sequence[str], processes: int) -> int:
    """Run a command in several processes at once, as `torchrun --standalone` does; return its exit code.

    SIGTERM and Ctrl-C reach all processes; if one of them fails, the others are stopped.
    """
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # each process speaks for itself
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id="heedful",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(),
    )
    program, *arguments = command
    try:
        elastic_launch(config, program)(*arguments)
    except SignalException as error:
        return 128 + error.sigval
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        return failure.exitcode if failure.exitcode > 0 else 128 - failure.exitcode
    return 0
