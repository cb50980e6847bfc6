"""Logging of a training run: an exact log of its updates, timings, TensorBoard curves, and the progress bar."""

import json
import math
import os
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from heedful.checkpoint.run_layout import RESULT, read_result
from heedful.errors import InputError, RunError
from heedful.progress import ProgressReporter, beside_bar, printer, shortened
from heedful.storage.atomic import atomic_file
from heedful.storage.complete_folder import verify_folder
from heedful.wording import counted

if TYPE_CHECKING:  # so that listing runs does not import torch
    from heedful.tasks.task import Scores

LOG = "log.jsonl"  # depends only on recipe, data and machine: an interrupted and resumed run writes the same bytes
VALID = "valid_"  # prefix of the names of validation scores in the log
TIMINGS = "timings.jsonl"


class LogFile:
    """JSONL log file of a run; on resuming, records after the checkpoint's update are dropped.

    A write that fails raises an OSError; its lines wait in memory, and are written before the next record.
    """

    def __init__(self, path: Path, update: int) -> None:
        self.path = path
        self.waiting = b""
        try:
            # The updates after the checkpoint are computed again, and the same lines are logged again.
            lines = [line for line in _lines(path) if (record := _record(line)) and record["update"] <= update]
            with atomic_file(path) as stream:
                stream.write(b"".join(lines))
            self.file = path.open("ab", buffering=0)  # unbuffered, so that `flush` knows which bytes are written
        except OSError as error:
            raise cannot_write(path, error) from error

    def write(self, record: Mapping[str, Any]) -> None:
        self.waiting += format_record(record).encode()
        self.flush()

    @property
    def missing(self) -> int:
        """Number of lines that are still waiting in memory because they could not be written."""
        return self.waiting.count(b"\n")

    def flush(self) -> None:
        while self.waiting:  # a full disk may accept only a part
            self.waiting = self.waiting[self.file.write(self.waiting) :]

    def close(self) -> None:
        with self.file:
            self.flush()


def records(path: Path) -> list[dict[str, Any]]:
    """Read the records of a log file, and skip all other lines, such as one cut short when the run was killed."""
    return [record for record in map(_record, _lines(path)) if record is not None]


def _lines(path: Path) -> list[bytes]:
    # An unfinished last line, cut short when the run was killed, is left out.
    *whole, _ = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [line + b"\n" for line in whole]


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and type(record.get("update")) is int else None


def flushed_mark(path: Path) -> dict[str, int] | None:
    """Flush a log file to disk, and return its size in bytes and its CRC-32; None if this fails or it is missing."""
    try:
        with path.open("rb+") as file:
            os.fsync(file.fileno())
            content = file.read()
    except OSError:
        return None
    return {"bytes": len(content), "crc32": zlib.crc32(content)}


def is_as_marked(path: Path, mark: Mapping[str, int]) -> bool:
    """Return True if a log file begins with the bytes that a mark from `flushed_mark` describes."""
    try:
        with path.open("rb") as file:
            content = file.read(mark["bytes"])
    except OSError:
        return False
    return {"bytes": len(content), "crc32": zlib.crc32(content)} == mark


def has_damaged_lines(path: Path) -> bool:
    """Return True if a log file has a line that is not a record, apart from an unfinished last one."""
    return any(_record(line) is None for line in _lines(path))


def format_record(record: Mapping[str, Any]) -> str:
    """Format a record as one line of strict JSON, in which NaN and infinities become null."""
    return json.dumps({key: finite_or_none(value) for key, value in record.items()}, ensure_ascii=False) + "\n"


def finite_or_none(value: Any) -> Any:
    """Replace a float that is not finite with None, since strict JSON cannot represent it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cannot_write(path: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write {path} ({error.strerror or error}): check the disk's free space and permissions; the same "
        "command resumes the run"
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
    norms = (record["norm"] for record in records(folder / LOG) if record["update"] == update and "norm" in record)
    return next(norms, None)


def final_scores(folder: Path) -> "Scores":
    """Read the scores of a run's final model; return {} before the end of the run, or without a validation set."""
    return {name: value for name, value in read_result(folder).items() if name != "update"}


def is_written(folder: Path, update: int) -> bool:
    """Return True if a run folder contains the intact final model of a run that ended after `update`."""
    if read_result(folder).get("update") != update:
        return False
    try:
        verify_folder(folder / "model")
    except InputError:
        return False
    return True


def tensorboard(folder: Path, update: int) -> Any:
    """Create a run's TensorBoard SummaryWriter, which drops points after `update`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "train.tensorboard = true needs the package tensorboard: pip install 'heedful[log]', or set it to false"
        ) from error
    path = folder / "tensorboard"
    try:
        return SummaryWriter(str(path), purge_step=update + 1)
    except OSError as error:
        raise cannot_write(path, error) from error


class Logger(AbstractContextManager):
    """Logger that writes nothing, for all processes of a run except rank zero."""

    def __exit__(self, *_: object) -> None:
        """Close the files."""

    def say(self, text: str) -> None:
        """Print a line."""

    def advance(self, tokens: int, left: float = inf) -> None:
        """Count a finished update and its tokens; the run ends after at most `left` more seconds of training."""

    def record(self, update: int, values: Mapping[str, float | None], seconds: float | None = None) -> None:
        """Log values of an update; `seconds` is the training time of the run so far."""

    def record_validation(self, update: int, scores: "Scores") -> None:
        """Log the scores of a validation."""

    def restart_clock(self) -> None:
        """Restart the speed measurement, so that time spent on validation does not count."""

    def conclude(self, update: int, scores: "Scores") -> None:
        """Write the result of a finished run, with the scores of its final model."""


class RunLogger(Logger):
    """Logger of a training run: writes the log, timings and curves, and shows progress on the console.

    Args:
        folder: The run's folder.
        update: The update from which the run resumes; records after it are dropped.
        total: The number of updates of the whole run, perhaps estimated.
        board: The SummaryWriter for training curves; None: no curves are written.
        console: The console on which progress is shown.
    """

    def __init__(self, folder: Path, update: int, total: int, board: Any, console: Console) -> None:
        self.folder = folder
        self.log = LogFile(folder / LOG, update)
        self.timings = LogFile(folder / TIMINGS, update)
        self.board = board
        self.console = console
        self.since = time.perf_counter()
        self.tokens = 0
        self.values = ""
        self.reporter = ProgressReporter("training", "updates", total, update, say=self.say_progress)
        self.bar = Progress(
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            disable=not console.is_terminal,
        )
        self.task: TaskID = self.bar.add_task("", total=total, completed=update)

    def __enter__(self) -> "RunLogger":
        self.bar.start()
        self.reporter.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.reporter.__exit__()
        self.bar.stop()
        for file in (self.log, self.timings):
            try:
                file.close()
            except OSError as error:
                self.say(f"{file.path} lacks its last {counted(file.missing, 'lines')} ({error.strerror})")
        if self.board:
            self.curve(self.board.close)

    def advance(self, tokens: int, left: float = inf) -> None:
        self.tokens += tokens
        self.reporter.end_within(left)
        self.reporter.advance()
        if self.console.is_terminal:
            self.draw_bar()

    def record(self, update: int, values: Mapping[str, float | None], seconds: float | None = None) -> None:
        self.append(self.log, {"update": update, **values})
        speed = round(self.tokens / (time.perf_counter() - self.since))
        # Measured times are in a separate file, because the log must not depend on them.
        timing = {"tokens_per_second": speed, "time": round(time.time()), "seconds": seconds}
        self.append(self.timings, {"update": update, **timing})
        self.draw(update, values)
        self.values = format_scores(values)
        self.say(f"update {update}: {self.values}, {self.speed()}")
        self.restart_clock()

    def record_validation(self, update: int, scores: "Scores") -> None:
        values = {f"{VALID}{key}": value for key, value in scores.items()}
        self.append(self.log, {"update": update, **values})
        self.draw(update, values)
        self.say(f"update {update}: {format_scores(values)}")

    def conclude(self, update: int, scores: "Scores") -> None:
        path = self.folder / RESULT
        try:
            with atomic_file(path) as stream:
                stream.write(format_record({"update": update, **scores}).encode())
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, file: LogFile, record: Mapping[str, Any]) -> None:
        """Append a record to a log file; a full disk does not end the run, but is reported once."""
        is_reported = bool(file.waiting)
        try:
            file.write(record)
        except OSError as error:
            if not is_reported:
                self.say(
                    f"NOT LOGGED: {file.path} ({error.strerror}); training continues, and the lines are kept in memory"
                )

    def draw(self, update: int, values: Mapping[str, float | None]) -> None:
        for tag, value in values.items():
            if value is not None and self.board:
                self.curve(partial(self.board.add_scalar, tag, value, update))

    def curve(self, action: Callable[[], object]) -> None:
        """Call the SummaryWriter; if it cannot write, report this once and stop logging to TensorBoard."""
        try:
            action()
        except OSError as error:
            self.board = None
            self.say(
                f"TENSORBOARD STOPPED: {self.folder / 'tensorboard'} ({error.strerror or error}); {LOG} has all numbers"
            )

    def speed(self) -> str:
        """Format the training speed since the last record."""
        return f"{self.tokens / (time.perf_counter() - self.since):,.0f} tokens/s"

    def restart_clock(self) -> None:
        self.since, self.tokens = time.perf_counter(), 0

    def draw_bar(self) -> None:
        """Draw the progress bar, followed by as many of the last values as fit on the line."""
        parts = (self.reporter.figures, self.speed(), self.values)
        sentence = ", ".join(part for part in parts if part)
        line = shortened(sentence, beside_bar(self.console.width))
        self.bar.update(self.task, completed=self.reporter.done, description=line)

    def say_progress(self, sentence: str) -> None:
        """Show the progress of the run: as a bar on a terminal, elsewhere as a line."""
        if self.console.is_terminal:
            self.draw_bar()
        else:
            self.say(f"{sentence}, {self.speed()}" if self.tokens else sentence)

    def say(self, text: str) -> None:
        printer(self.console)(text)  # above the progress bar


def format_scores(values: Mapping[str, float | None]) -> str:
    """Format names and values with four significant digits."""
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if value is not None)
