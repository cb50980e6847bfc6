"""A job over a folder: shards to parts, parts to files of results; any number of processes may work on it.

In the output folder, `.job` holds the plan and, while a file is not finished, a folder of its parts and claims:

    output/.job/plan.json
    output/.job/parts/news.en/0000000001-0000004096
    output/.job/parts/news.en/0000004097-0000008192.claim
    output/talks.en

Every file appears by a rename, with a temporary name that no other process uses. So a process may die at any time, and
nothing else is needed to go on than the folder itself.
"""

import logging
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import InputError, RunError
from heedful.jobs.claims import Claims
from heedful.jobs.parts import ShardReader, read_part, write_part
from heedful.jobs.plan import (
    Compute,
    Done,
    Plan,
    Setting,
    Shard,
    check_unchanged,
    input_changed,
    make_plan,
    plan_text,
    read_plan,
    result_name,
    survey,
)
from heedful.storage.atomic import TEMPORARY, atomic_file, named_write_errors, remove
from heedful.storage.disk import DISK

LOG = logging.getLogger(__name__)  # a warning is shown on standard error, unless the program says otherwise
JOB = ".job"
PLAN = "plan.json"
PARTS = "parts"
JOINED = "joined"
GOES_ON = "what is done is kept, and when there is room and permission the same command goes on"


class FolderJob:
    """Job over the files of a folder: a line of text becomes a line of results, in a file of the same name.

    Args:
        source: The input folder.
        output: The output folder, which holds the plan.
        plan: The plan.
        claims: The claims of this process.
    """

    def __init__(self, source: Path, output: Path, plan: Plan, claims: Claims) -> None:
        self.plan = plan
        self.output = output
        self._source = source
        self._claims = claims
        self._reader = ShardReader(source)
        self._writer = secrets.token_hex(4)
        with named_write_errors(output, GOES_ON):
            for file in self.unfinished():
                self._parts(file).mkdir(parents=True, exist_ok=True)

    def unfinished(self) -> list[str]:
        """List the files of the input folder whose results are not joined yet."""
        return [file for file in self.plan.files if not self._result(file).exists()]

    def missing(self, file: str) -> list[Shard]:
        """List the shards of a file that have no part yet; none if the results are joined."""
        if self._result(file).exists():
            return []
        try:
            there = set(os.listdir(self._parts(file)))
        except FileNotFoundError:
            return []
        return [shard for shard in self.plan.files[file].shards if shard.name not in there]

    def compute(self, shard: Shard, compute: Compute, done: Done = lambda _: None) -> bool:
        """Compute a shard and write its part; return False if it is done already, or another worker does it.

        Args:
            shard: The shard.
            compute: Turns lines into results.
            done: Called with numbers of lines just done.

        Raises:
            InputError: The input has changed.
            RunError: The part cannot be written.
        """
        if self._is_done(shard):
            return False
        claim = self._part(shard).with_suffix(".claim")
        with named_write_errors(self.output, GOES_ON), self._claims.claim(claim) as ours:
            if not ours or self._is_done(shard):
                return False
            lines = self._reader.read(shard)
            with self._unless_joined(shard.file):
                write_part(self._part(shard), compute(iter(lines), done), shard, self._writer)
        return True

    def join(self, file: str) -> bool:
        """Join the parts of a file if all are there; return True if this call did it.

        The input file is read again before: the results are those of its lines as they are now, one for each.

        Raises:
            InputError: The input has changed.
            RunError: The results cannot be written.
        """
        if self._result(file).exists() or self.missing(file):
            return False
        with named_write_errors(self.output, GOES_ON), self._claims.claim(self._parts(file) / "joined.claim") as ours:
            if not ours or self._result(file).exists():
                return False
            with self._unless_joined(file):
                return self._remove_damaged(file) and self._write_joined(file)
        return False

    def _remove_damaged(self, file: str) -> bool:
        """Remove damaged parts, which are then computed again; True if there were none."""
        shards = self.plan.files[file].shards
        damaged = [shard for shard in shards if read_part(self._part(shard), shard) is None]
        for shard in damaged:
            LOG.warning("%s: its results are damaged, and are computed again", shard)
            DISK.remove_file(self._part(shard))
        if survey(self._source / file, self.plan.shard_lines) != self.plan.files[file]:
            raise input_changed(self._source / file, "holds other text than before")
        return not damaged

    def _write_joined(self, file: str) -> bool:
        joined = self._parts(file) / JOINED
        with atomic_file(joined, writer=self._writer) as stream:
            for shard in self.plan.files[file].shards:
                results = read_part(self._part(shard), shard)
                if results is None:
                    raise RunError(f"{self._part(shard)}: is damaged; the same command goes on, and computes it again")
                stream.write(results)
        DISK.rename(joined, self._result(file))
        DISK.flush(self.output)
        with suppress(OSError):  # others, who were too slow, may still write there
            remove(DISK, self._parts(file))
        return True

    def _is_done(self, shard: Shard) -> bool:
        return self._part(shard).exists() or self._result(shard.file).exists()

    @contextmanager
    def _unless_joined(self, file: str) -> Iterator[None]:
        """Ignore a failure to write because another worker has joined the file, and removed the folder of its parts."""
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
        return self.output / result_name(file)


def open_job(
    source: Path,
    output: Path,
    settings: Mapping[str, Setting],
    shard_lines: int,
    done: Done = lambda _: None,
    claims: Claims | None = None,
) -> FolderJob:
    """Begin a job, or join one that was begun with the same settings and input.

    Args:
        source: The input folder.
        output: The output folder; it is made in an existing folder, or is empty, or belongs to the job.
        settings: What the results depend on beside the text, such as the digest of a model.
        shard_lines: Number of lines of a shard, a multiple of `WINDOW`.
        done: Called with numbers of lines just read, if the job begins.
        claims: The claims of this process; None: with the usual lease.

    Raises:
        InputError: The folders cannot be used, a file is not text, or the job was begun with something else.
        RunError: The plan cannot be written.
    """
    check_folders(source, output)
    if not (output / JOB).is_dir():
        plan = make_plan(source, settings, shard_lines, done)
        with named_write_errors(output, GOES_ON):
            _publish(plan, output)
    plan = read_plan(output / JOB / PLAN)
    check_unchanged(plan, source, settings, shard_lines, output)
    return FolderJob(source, output, plan, claims or Claims())


def check_folders(source: Path, output: Path) -> None:
    """Check that results of a job can go to a folder.

    Raises:
        InputError: The output is a file, lies in no existing folder or in the input, or holds something else.
    """
    if output.resolve() == source.resolve() or source.resolve() in output.resolve().parents:
        raise InputError(f"--output {output}: lies in the input folder; name a folder elsewhere")
    if (output.exists() and not output.is_dir()) or not output.parent.is_dir():
        raise InputError(f"--output {output}: name a folder, in a folder that is there; the input is a folder")
    names = os.listdir(output) if output.exists() else []
    if JOB not in names and any(not name.startswith(TEMPORARY) for name in names):
        raise InputError(f"--output {output}: holds other files; name a new folder for the results")


def _publish(plan: Plan, output: Path) -> None:
    output.mkdir(exist_ok=True)
    temporary = output / f"{TEMPORARY}{secrets.token_hex(4)}"
    temporary.mkdir()
    try:
        with atomic_file(temporary / PLAN) as stream:
            stream.write(plan_text(plan))
        DISK.rename(temporary, output / JOB)  # fails if another process was faster, as a folder with files stays
    except OSError:
        with suppress(OSError):
            remove(DISK, temporary)
        if not (output / JOB / PLAN).is_file():
            raise
    DISK.flush(output)
