"""Training in several processes: how they share each update, how they sum results, and how they are started."""

from heedful.registry import public_names

_REDUCER = (
    "SINGLE_PROCESS ProcessGroup Reducer ShardedGroup num_processes end_process end_with_error is_rank_zero "
    "join_process_group reducer_factory launcher_has_ended num_local_processes launched_by_torchrun"
)
_SHARDS = "Rows Sharded any_sharded copy_into is_sharded local rows_of whole"

__getattr__ = public_names(
    __name__, {"heedful.distributed.reducer": _REDUCER.split(), "heedful.distributed.shards": _SHARDS.split()}
)
