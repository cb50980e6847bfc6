"""Job over a folder: claims on shards, workers, and result files, shared by any number of processes."""

import logging
import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psutil
from filelock import lock_descriptor

from heedful.errors import InputError, RunError
from heedful.jobs.plan import (
    Compute,
    Done,
    Plan,
    Setting,
    Shard,
    ShardReader,
    check_unchanged,
    input_changed,
    make_plan,
    plan_text,
    read_part,
    read_plan,
    survey,
    write_part,
)
from heedful.progress import ProgressReporter
from heedful.storage.atomic import TEMPORARY, atomic_file, named_write_errors, remove
from heedful.storage.disk import DISK, without_compression

LEASE = 60.0  # seconds without a touch after which a claim is free
BEATS = 6  # number of times that the owner touches a claim within the lease time


class Claims:
    """Claims of one process.

    The claim of another process is free once that process has ended, or has not touched it for `lease` seconds.
    """

    def __init__(self, lease: float = LEASE) -> None:
        self._lease = lease
        self._machine = this_machine()
        self._touched: dict[Path, tuple[int, float]] = {}  # others' claims: last touch (ns), and when seen (s)

    @contextmanager
    def claim(self, path: Path) -> Iterator[bool]:
        """Hold the claim file `path` within the block; yield False if another worker holds it or its folder is gone."""
        file = self._take(path)
        if file is None:
            yield False
            return
        ended = threading.Event()

        def touch() -> None:
            while not ended.wait(self._lease / BEATS):
                with suppress(OSError):
                    os.utime(path)

        beat = threading.Thread(target=touch, daemon=True)
        beat.start()
        try:
            yield True
        finally:
            ended.set()
            beat.join()
            # Removed before the lock is released: afterwards, the file may be the claim of another worker.
            with suppress(OSError):
                path.unlink()
            file.close()
            if sys.platform == "win32":  # where an open file cannot be removed
                with suppress(OSError):
                    path.unlink()

    def _take(self, path: Path) -> BinaryIO | None:
        """Open a claim's file and write this machine's id to it; return None if the claim is not free.

        A claim is free if its owner has ended: on this machine, nobody holds the file's lock; on another machine, the
        file has not been touched for the lease time.
        """
        try:
            file = path.open("x+b")
            _lock(file, wait=True)  # waits, because another worker may briefly lock the new file to read it
        except FileExistsError:
            try:
                file = path.open("r+b")
            except FileNotFoundError:
                return None  # just released
            # On the owner's machine, the lock shows that the owner is alive; on other machines, the touches do.
            if not (_lock(file, wait=False) and file.read() == self._machine):
                # Clocks differ between machines, so the lease time counts from when this process first saw the touch.
                touch, now = os.fstat(file.fileno()).st_mtime_ns, time.monotonic()
                before, since = self._touched.get(path, (None, now))
                if touch != before:
                    self._touched[path] = touch, now
                if touch != before or now - since <= self._lease:
                    file.close()
                    return None
        except FileNotFoundError:
            return None
        file.seek(0)
        file.truncate()
        file.write(self._machine)
        file.flush()
        return file


def this_machine() -> bytes:
    """Return an id for this machine that changes when it restarts.

    A claim contains it, because a file lock reliably shows only whether an owner on the same machine is alive.
    """
    return f"{platform.node()} since {psutil.boot_time():.0f}".encode()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Lock an open file; return False if another process holds the lock, or if the system has no file locks."""
    try:
        return lock_descriptor(file.fileno(), blocking=wait)
    except OSError:
        return False


LOG = logging.getLogger(__name__)
JOB = ".job"
PLAN = "plan.json"
PARTS = "parts"
JOINED = "joined"
RESUMES = "finished results are kept; once it can be written, the same command resumes the job"


class FolderJob:
    """Job over the files in a folder: each line becomes a result line, in an uncompressed file of the same name."""

    def __init__(self, source: Path, output: Path, plan: Plan, claims: Claims) -> None:
        self.plan = plan
        self.output = output
        self._source = source
        self._claims = claims
        self._reader = ShardReader(source)
        self._writer = secrets.token_hex(4)
        with named_write_errors(output, RESUMES):
            for file in self.unfinished():
                self._parts(file).mkdir(parents=True, exist_ok=True)

    def unfinished(self) -> list[str]:
        """List the files in the input folder whose results are not joined yet."""
        return [file for file in self.plan.files if not self._result(file).exists()]

    def missing(self, file: str) -> list[Shard]:
        """List the shards of a file that have no part yet; return [] if the results are joined."""
        if self._result(file).exists():
            return []
        try:
            parts = set(os.listdir(self._parts(file)))
        except FileNotFoundError:
            # Another worker has joined the file, and removed the folder of its parts.
            return []
        return [shard for shard in self.plan.files[file].shards if shard.name not in parts]

    def compute(self, shard: Shard, compute: Compute, done: Done = lambda _: None) -> bool:
        """Compute a shard and write its part; return False if it is already done, or another worker is computing it."""

        def is_done() -> bool:
            return self._part(shard).exists() or self._result(shard.file).exists()

        if is_done():
            return False
        claim = self._part(shard).with_suffix(".claim")
        with named_write_errors(self.output, RESUMES), self._claims.claim(claim) as ours:
            # Check again, since another worker may have written the part while it held the claim.
            if not ours or is_done():
                return False
            lines = self._reader.read(shard)
            with self._unless_joined(shard.file):
                write_part(self._part(shard), compute(iter(lines), done), shard, self._writer)
        return True

    def join(self, file: str) -> bool:
        """Join the parts of a file if all of them exist; return True if this call did so.

        Damaged parts are removed instead, so that they are computed again. The input file is compared with the plan
        before the parts are joined, because each result must belong to the line that is currently in the file.
        """
        if self._result(file).exists() or self.missing(file):
            return False
        with named_write_errors(self.output, RESUMES), self._claims.claim(self._parts(file) / "joined.claim") as ours:
            if not ours or self._result(file).exists():
                return False
            with self._unless_joined(file):
                shards = self.plan.files[file].shards
                damaged = [shard for shard in shards if read_part(self._part(shard), shard) is None]
                for shard in damaged:
                    LOG.warning("%s: its results are damaged; computing them again", shard)
                    DISK.remove_file(self._part(shard))
                if survey(self._source / file, self.plan.shard_lines) != self.plan.files[file]:
                    raise input_changed(self._source / file, "contains different text than before")
                if damaged:
                    return False
                joined = self._parts(file) / JOINED
                with atomic_file(joined, writer=self._writer) as stream:
                    for shard in shards:
                        results = read_part(self._part(shard), shard)
                        if results is None:
                            raise RunError(f"{self._part(shard)}: damaged; run the same command to compute it again")
                        stream.write(results)
                DISK.rename(joined, self._result(file))
                DISK.flush(self.output)
                with suppress(OSError):  # slower workers may still write to the folder
                    remove(DISK, self._parts(file))
                return True
        return False

    @contextmanager
    def _unless_joined(self, file: str) -> Iterator[None]:
        """Ignore a write error if another worker has joined the parts of the file and removed their folder."""
        try:
            yield
        except OSError:
            if not self._result(file).exists():
                raise

    def _parts(self, file: str) -> Path:
        return self.output / JOB / PARTS / file

    def _part(self, shard: Shard) -> Path:
        return self._parts(shard.file) / shard.name

    def _result(self, file: str) -> Path:
        return self.output / without_compression(file)  # results are not compressed


def open_job(
    source: Path,
    output: Path,
    settings: Mapping[str, Setting],
    shard_lines: int,
    done: Done = lambda _: None,
    claims: Claims | None = None,
) -> FolderJob:
    """Start a job, or take part in one that was started with the same settings and input."""
    check_output_folder(source, output)
    if not (output / JOB).is_dir():
        plan = make_plan(source, settings, shard_lines, done)
        with named_write_errors(output, RESUMES):
            _publish(plan, output)
    # Read in any case: another process may have published its plan first.
    plan = read_plan(output / JOB / PLAN)
    check_unchanged(plan, source, settings, shard_lines, output)
    return FolderJob(source, output, plan, claims or Claims())


def check_output_folder(source: Path, output: Path) -> None:
    """Check that a folder can hold the results of a job: it is new, empty, or has the results of a job."""
    if source.resolve() in (output.resolve(), *output.resolve().parents):
        where = "is" if output.resolve() == source.resolve() else "is in"
        raise InputError(f"--output {output}: {where} the input folder; choose a folder elsewhere")
    if output.exists() and not output.is_dir():
        raise InputError(f"--output {output}: is a file, but the input is a folder; give a new folder for the results")
    if not output.parent.is_dir():
        raise InputError(f"--output {output}: the folder {output.parent} does not exist; create it, or choose another")
    names = os.listdir(output) if output.exists() else []
    if JOB not in names and any(not name.startswith(TEMPORARY) for name in names):
        raise InputError(f"--output {output}: contains other files; choose a new folder for the results")


def _publish(plan: Plan, output: Path) -> None:
    output.mkdir(exist_ok=True)
    # A random name, because several processes may start the job at the same time.
    temporary = output / f"{TEMPORARY}{secrets.token_hex(4)}"
    temporary.mkdir()
    try:
        with atomic_file(temporary / PLAN) as stream:
            stream.write(plan_text(plan))
        # Fails if another process was faster, because then the target is not empty.
        DISK.rename(temporary, output / JOB)
    except OSError:
        with suppress(OSError):
            remove(DISK, temporary)
        if not (output / JOB / PLAN).is_file():
            raise
    DISK.flush(output)


PAUSE = 0.3  # seconds until an idle worker checks for work again


class Worker:
    """Worker of a job: computes shards, and reports the progress of all workers."""

    def __init__(self, job: FolderJob, progress: ProgressReporter) -> None:
        self.job = job
        self._progress = progress
        self._uncounted = {file: set(job.missing(file)) for file in job.plan.files}  # shards not counted yet

    def run(self, compute: Compute) -> None:
        """Compute shards until all files are finished, by this worker or others."""

        def work(files: list[str]) -> bool:
            worked = False
            for file in files:
                for shard in self.job.missing(file):
                    is_new = shard in self._uncounted[file]  # otherwise already counted, but its part was damaged
                    if self.job.compute(shard, compute, self._progress.advance if is_new else lambda _: None):
                        worked = True
                        self._uncounted[file].discard(shard)
                        self.count(file)
                worked = self.job.join(file) or worked
            return worked

        self.until_finished(work)

    def until_finished(self, work: Callable[[list[str]], bool]) -> None:
        """Call `work` with the unfinished files until there are none; wait after calls that return False."""
        while files := self.job.unfinished():
            if not work(files):
                time.sleep(PAUSE)
            for file in self._uncounted:
                self.count(file)

    def count(self, file: str) -> None:
        """Count the shards of a file that other workers have computed in the meantime."""
        if not self._uncounted[file]:
            return
        finished = self._uncounted[file].difference(self.job.missing(file))
        self._uncounted[file] -= finished
        self._progress.advance(sum(shard.lines for shard in finished))
