"""Log files of a training run: exact records of its updates, from which a resumed run drops what it does again."""

import json
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file
from heedful.storage.manifest import check

if TYPE_CHECKING:
    from heedful.tasks.task import Scores

LOG = "log.jsonl"  # depends on recipe, data and machine only: an interrupted run writes the same bytes
VALID = "valid_"  # begins the names of validation scores in it
TIMINGS = "timings.jsonl"
RESULT = "result.json"  # for a run that has ended: the scores of its final model on the validation set


@dataclass(frozen=True)
class LogMark:
    """Mark of how far a log was written when a checkpoint was saved: its bytes until then and their CRC-32."""

    bytes: int
    crc32: int


class Lines:
    """JSONL log file of a run; on resuming, records after the update of the checkpoint are dropped.

    Lines that cannot be written wait in memory and are written before the next record.

    Raises:
        RunError: the file cannot be written.
    """

    def __init__(self, path: Path, update: int) -> None:
        self.path = path
        self.waiting = b""
        try:
            kept = [line for line in _lines(path) if (record := _record(line)) and record["update"] <= update]
            with atomic_file(path) as stream:
                stream.write(b"".join(kept))
            self.file = path.open("ab", buffering=0)  # so that it is known which bytes were written
        except OSError as error:
            raise cannot_write(path, error) from error

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record as a JSON line to the log file; a number that is not finite becomes null.

        Raises:
            OSError: the file cannot be written; the record waits in memory.
        """
        self.waiting += json_line(record).encode()
        self.flush()

    @property
    def missing(self) -> int:
        """Number of lines that could not be written so far and wait in memory."""
        return self.waiting.count(b"\n")

    def flush(self) -> None:
        """Write the lines that wait in memory.

        Raises:
            OSError: some of the lines still wait.
        """
        while self.waiting:
            self.waiting = self.waiting[self.file.write(self.waiting) :]

    def close(self) -> None:
        """Write the lines that wait in memory, and close the file.

        Raises:
            OSError: the waiting lines are lost.
        """
        with self.file:
            self.flush()


def records(path: Path) -> list[dict[str, Any]]:
    """Read the records of a log file; lines that are none, such as one that a kill has cut, are left out."""
    return [record for record in map(_record, _lines(path)) if record is not None]


def _lines(path: Path) -> list[bytes]:
    """The finished lines of a log file, each with its end; none if there is no file."""
    *whole, _ = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [line + b"\n" for line in whole]


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and type(record.get("update")) is int else None


def flushed_mark(path: Path) -> LogMark | None:
    """Flush a log file to the disk, and mark how far it is written; None if there is no file, or no disk for it."""
    try:
        with path.open("rb+") as file:
            os.fsync(file.fileno())
            content = file.read()
    except OSError:
        return None
    return LogMark(len(content), zlib.crc32(content))


def is_as_marked(path: Path, mark: LogMark) -> bool:
    """True if a log file begins with the bytes that were there when it was marked."""
    try:
        with path.open("rb") as file:
            content = file.read(mark.bytes)
    except OSError:
        return False
    return LogMark(len(content), zlib.crc32(content)) == mark


def has_damaged_lines(path: Path) -> bool:
    """True if a log file has a line that is no record, beside an unfinished last one."""
    return any(_record(line) is None for line in _lines(path))


def json_line(record: Mapping[str, Any]) -> str:
    """Format a record as one line of strict JSON, in which NaN and infinities become null."""
    return json.dumps({key: strict(value) for key, value in record.items()}, ensure_ascii=False) + "\n"


def strict(value: Any) -> Any:
    """Replace a float that is not finite by None, since strict JSON cannot hold it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cannot_write(path: Path, error: OSError) -> RunError:
    """Create the error for a file that a run needs and cannot write."""
    return RunError(
        f"cannot write {path} ({error.strerror or error}): look at the disk's free space and rights; the same command "
        "goes on"
    )


def logged_scores(folder: Path, update: int) -> "Scores | None":
    """Read the validation scores of an update from a run's log, exact to the last bit; None if there are none."""
    for record in reversed(records(folder / LOG)):
        if record["update"] == update and any(key.startswith(VALID) for key in record):
            values = {key.removeprefix(VALID): value for key, value in record.items() if key.startswith(VALID)}
            return {key: math.nan if value is None else value for key, value in values.items()}
    return None


def logged_norm(folder: Path, update: int) -> float | None:
    """Read the gradient norm of an update from a run's log; None if it was not logged or is not finite."""
    found = (record["norm"] for record in records(folder / LOG) if record["update"] == update and "norm" in record)
    return next(found, None)


def final_scores(folder: Path) -> "Scores":
    """Read the scores of a run's final model; empty before the end of the run, or without a validation set."""
    return {name: value for name, value in result(folder).items() if name != "update"}


def result(folder: Path) -> dict[str, Any]:
    """Read the "update" at which a run has ended and the scores of its final model; empty before the end."""
    try:
        return _record((folder / RESULT).read_bytes()) or {}
    except OSError:
        return {}


def is_written(folder: Path, update: int) -> bool:
    """True if the folder of a run holds the final model of an update, without a damaged byte."""
    if result(folder).get("update") != update:
        return False
    try:
        check(folder / "model")
    except InputError:
        return False
    return True
