"""Worker of a job: computes the shards that no other worker computes, until the whole job is done."""

import time
from collections.abc import Callable

from heedful.jobs.folder_job import FolderJob
from heedful.jobs.plan import Compute
from heedful.progress import ProgressReporter

PAUSE = 0.3  # seconds until a worker that has nothing to do looks again


class Worker:
    """Worker of a job: computes shards, and reports the progress of all workers.

    Args:
        job: The job.
        progress: Counts the lines that are done, by any worker.
    """

    def __init__(self, job: FolderJob, progress: ProgressReporter) -> None:
        self.job = job
        self._progress = progress
        self._open = {file: set(job.missing(file)) for file in job.plan.files}  # shards not counted yet

    def run(self, compute: Compute) -> None:
        """Compute shards until all files are finished, by this worker or others.

        Raises:
            InputError: The input has changed.
            RunError: Results cannot be written.
        """

        def work(files: list[str]) -> bool:
            worked = [self._work_on(file, compute) for file in files]
            return any(worked)

        self.until_finished(work)

    def until_finished(self, work: Callable[[list[str]], bool]) -> None:
        """Call a function with the unfinished files until there are none; wait after calls that found nothing to do."""
        while files := self.job.unfinished():
            if not work(files):
                time.sleep(PAUSE)
            for file in self._open:
                self.count(file)

    def count(self, file: str) -> None:
        """Count the shards of a file that other workers have done in the meantime."""
        if not self._open[file]:
            return
        found = self._open[file].difference(self.job.missing(file))
        self._open[file] -= found
        self._progress.advance(sum(shard.lines for shard in found))

    def _work_on(self, file: str, compute: Compute) -> bool:
        worked = False
        for shard in self.job.missing(file):
            counts = shard in self._open[file]  # else it was done before, and its part is damaged
            if self.job.compute(shard, compute, self._progress.advance if counts else lambda _: None):
                worked = True
                self._open[file].discard(shard)
                self.count(file)
        return self.job.join(file) or worked
