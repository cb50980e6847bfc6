"""A job on the machines of a Ray cluster, as a Ray Data job: each shard is a row, and actors compute rows.

Ray decides where a shard is computed and nothing else: an actor opens the job in the same folder and with the same
checks as any other worker. So a job may be begun with Ray and finished without it, or both at once.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from heedful.errors import HeedfulError, InputError, RunError
from heedful.jobs.folder_job import FolderJob, Worker
from heedful.jobs.plan import Compute, Shard
from heedful.progress import ProgressReporter

ATTEMPTS = 3  # to start Ray
Open = Callable[[], tuple[FolderJob, Compute]]


class ShardActor:
    """Actor that computes shards of a job, each in a batch of one row with the fields of a `Shard`."""

    def __init__(self, open_job: Open) -> None:
        self._job, self._compute = open_job()

    def __call__(self, batch: dict[str, Any], /) -> dict[str, Any]:
        """Compute the one shard of a batch if nobody else does; return its file, whether it was computed, and an error.

        An error of heedful's is returned as data, since Ray does not bring its class back.
        """
        [file], [first], [lines], [crc32] = (batch[field] for field in ("file", "first", "lines", "crc32"))
        shard = Shard(str(file), int(first), int(lines), str(crc32))
        try:
            computed, error, code = self._job.compute(shard, self._compute), "", 0
        except HeedfulError as failed:
            computed, error, code = False, str(failed), failed.exit_code
        return {"file": [shard.file], "computed": [computed], "error": [error], "exit_code": [code]}


def run_on_ray(job: FolderJob, open_job: Open, progress: ProgressReporter) -> None:
    """Run a job on the Ray cluster that RAY_ADDRESS names, or else on this machine."""
    try:
        import ray
        from ray.data.exceptions import SystemException
        from ray.exceptions import RayError
    except ImportError as error:
        raise InputError(f"--ray needs Ray ({error}): install it with `pip install 'heedful[ray]'`") from error
    worker = Worker(job, progress)

    def work(files: list[str]) -> bool:
        shards = [shard for file in files for shard in job.missing(file)]
        worked = False
        for file, computed in computed_by_actors(shards, open_job, on_gpu=job.plan.settings.get("device") == "cuda"):
            worker.count(file)
            worked |= job.join(file) or computed
        joined = [job.join(file) for file in files]
        return worked or any(joined)

    try:
        start_ray()
        worker.until_finished(work)
    except (RayError, SystemException) as error:
        reason = str(error).partition("\n")[0]
        raise RunError(f"Ray ended the job ({reason}); what is done is kept, and the same command goes on") from error
    finally:
        ray.shutdown()


def start_ray() -> None:
    """Connect to the Ray cluster that RAY_ADDRESS names, or start Ray on this machine."""
    import ray

    # Ray often needs a second try on a busy machine.
    failures: list[Exception] = []
    while len(failures) < ATTEMPTS:
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # a bare one, if a busy machine takes longer than Ray's 30 seconds
            failures.append(error)
            ray.shutdown()
        else:
            return
    raise RunError(f"Ray does not start ({failures[-1]}); what is done is kept, and the same command goes on")


def computed_by_actors(shards: list[Shard], open_job: Open, on_gpu: bool) -> Iterator[tuple[str, bool]]:
    """Let actors compute shards, one actor a core or GPU; yield the file of each shard and whether it was computed."""
    import ray
    from ray.data import ActorPoolStrategy, DataContext, from_items

    if not shards:
        return
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    DataContext.get_current().enable_progress_bars = False
    actors = min(len(shards), max(1, int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 1))))
    computed = from_items([vars(shard) for shard in shards], override_num_blocks=len(shards)).map_batches(
        ShardActor,
        batch_size=1,
        compute=ActorPoolStrategy(size=actors),
        fn_constructor_args=(open_job,),
        num_cpus=0 if on_gpu else 1,
        num_gpus=1 if on_gpu else 0,
    )
    for row in computed.iter_rows():
        if error := row["error"]:
            raise InputError(error) if row["exit_code"] == InputError.exit_code else RunError(error)
        yield row["file"], bool(row["computed"])
