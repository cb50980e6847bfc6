"""Training in several processes: what they share of each update, how they sum it, and how they are started."""

from heedful.parallel.process_group import (
    all_processes,
    end_process,
    end_with_error,
    is_first_process,
    join_process_group,
    launcher_has_ended,
    local_processes,
    of_torchrun,
)
from heedful.parallel.reducer import SINGLE_PROCESS, Reducer

__all__ = [
    "SINGLE_PROCESS",
    "Reducer",
    "all_processes",
    "end_process",
    "end_with_error",
    "is_first_process",
    "join_process_group",
    "launcher_has_ended",
    "local_processes",
    "of_torchrun",
]
