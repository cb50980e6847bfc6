"""Training in several processes: what they share of each update, how they sum it, and how they are started."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.distributed.reducer import (
        SINGLE_PROCESS,
        Exchange,
        ProcessGroup,
        Reducer,
        ShardedGroup,
        all_processes,
        end_process,
        end_with_error,
        is_rank_zero,
        join_process_group,
        kind_of_group,
        launcher_has_ended,
        local_processes,
        of_torchrun,
    )
    from heedful.distributed.shards import Rows, Sharded, are_sharded, copy_into, local, rows_of, whole

_MODULES = {
    "heedful.distributed.reducer": (
        "SINGLE_PROCESS",
        "Exchange",
        "ProcessGroup",
        "Reducer",
        "ShardedGroup",
        "all_processes",
        "end_process",
        "end_with_error",
        "is_rank_zero",
        "join_process_group",
        "kind_of_group",
        "launcher_has_ended",
        "local_processes",
        "of_torchrun",
    ),
    "heedful.distributed.shards": ("Rows", "Sharded", "are_sharded", "copy_into", "local", "rows_of", "whole"),
}

__all__ = [
    "SINGLE_PROCESS",
    "Exchange",
    "ProcessGroup",
    "Reducer",
    "Rows",
    "Sharded",
    "ShardedGroup",
    "all_processes",
    "are_sharded",
    "copy_into",
    "end_process",
    "end_with_error",
    "is_rank_zero",
    "join_process_group",
    "kind_of_group",
    "launcher_has_ended",
    "local",
    "local_processes",
    "of_torchrun",
    "rows_of",
    "whole",
]

__getattr__ = public_names(__name__, _MODULES)
