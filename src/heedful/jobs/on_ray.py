"""Job on the machines of a Ray cluster: Ray Data passes each shard, as a row, to an actor that computes it.

Ray only decides where a shard is computed: an actor opens the job in the same folder and with the same checks as any
other worker. A job can be started with Ray and finished without it, or run both ways at once.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

from heedful.errors import HeedfulError, InputError, RunError
from heedful.jobs.folder_job import FolderJob, Worker
from heedful.jobs.plan import Compute, Shard
from heedful.progress import ProgressReporter

ATTEMPTS = 3  # to start Ray, which often needs a second attempt on a busy machine
RESUMES = "finished results are kept; the same command resumes the job"
Open = Callable[[], tuple[FolderJob, Compute]]


class ShardActor:
    """Ray actor that computes shards of a job; a shard arrives as a batch of one row with the fields of a `Shard`."""

    def __init__(self, open_job: Open) -> None:
        self._job, self._compute = open_job()

    def __call__(self, batch: dict[str, Any], /) -> dict[str, Any]:
        """Compute the shard of a batch unless another worker does; return its file, and the outcome or error.

        A HeedfulError is returned as data, because Ray does not preserve its class.
        """
        [file], [first], [lines], [crc32] = (batch[field] for field in ("file", "first", "lines", "crc32"))
        shard = Shard(str(file), int(first), int(lines), str(crc32))
        try:
            computed, message, code = self._job.compute(shard, self._compute), "", 0
        except HeedfulError as error:
            computed, message, code = False, str(error), error.exit_code
        return {"file": [shard.file], "computed": [computed], "error": [message], "exit_code": [code]}


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
        # Join once more, for files whose last shard another worker has computed.
        joined = [job.join(file) for file in files]
        return worked or any(joined)

    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                ray.init(log_to_driver=False, logging_level=logging.ERROR)
                break
            except Exception as error:  # Ray raises a plain Exception if a busy machine takes over 30 seconds
                ray.shutdown()
                if attempt == ATTEMPTS:
                    raise RunError(f"Ray could not be started ({error}); {RESUMES}") from error
        worker.until_finished(work)
    except (RayError, SystemException) as error:
        reason = str(error).partition("\n")[0]
        raise RunError(f"Ray ended the job ({reason}); {RESUMES}") from error
    finally:
        ray.shutdown()


def computed_by_actors(shards: list[Shard], open_job: Open, on_gpu: bool) -> Iterator[tuple[str, bool]]:
    """Compute shards in actors, one per core or GPU; yield the file of each shard and whether it was computed."""
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
