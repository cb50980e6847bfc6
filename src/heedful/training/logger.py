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
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from heedful.errors import InputError, RunError
from heedful.progress import ProgressReporter, beside_bar, shortened
from heedful.storage.atomic import atomic_file
from heedful.storage.manifest import check
from heedful.wording import counted

if TYPE_CHECKING:  # so that a list of runs does not import torch
    from heedful.tasks.task import Scores

LOG = "log.jsonl"  # depends on recipe, data and machine only: an interrupted run writes the same bytes
VALID = "valid_"  # begins the names of validation scores in it
TIMINGS = "timings.jsonl"
RESULT = "result.json"  # for a run that has ended: the scores of its final model on the validation set


class LogMark(NamedTuple):
    """Mark of how far a log was written when a checkpoint was saved: its bytes until then and their CRC-32."""

    bytes: int
    crc32: int


class Lines:
    """JSONL log file of a run; on resuming, records after the update of the checkpoint are dropped.

    Lines that cannot be written wait in memory, and are written before the next record; until then OSErrors are raised.
    """

    def __init__(self, path: Path, update: int) -> None:
        self.path = path
        self.waiting = b""
        try:
            # The updates after the checkpoint are made again, and then log the same lines.
            lines = [line for line in _lines(path) if (record := _record(line)) and record["update"] <= update]
            with atomic_file(path) as stream:
                stream.write(b"".join(lines))
            self.file = path.open("ab", buffering=0)  # so that it is known which bytes were written
        except OSError as error:
            raise cannot_write(path, error) from error

    def write(self, record: Mapping[str, Any]) -> None:
        self.waiting += json_line(record).encode()
        self.flush()

    @property
    def missing(self) -> int:
        """Number of lines that could not be written so far and wait in memory."""
        return self.waiting.count(b"\n")

    def flush(self) -> None:
        # a full disk may take only a part of what is written
        while self.waiting:
            self.waiting = self.waiting[self.file.write(self.waiting) :]

    def close(self) -> None:
        with self.file:
            self.flush()


def records(path: Path) -> list[dict[str, Any]]:
    """Read the records of a log file; lines that are none, such as one that a kill has cut, are left out."""
    return [record for record in map(_record, _lines(path)) if record is not None]


def _lines(path: Path) -> list[bytes]:
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
    norms = (record["norm"] for record in records(folder / LOG) if record["update"] == update and "norm" in record)
    return next(norms, None)


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


class Board(Protocol):
    """Interface of a writer of training curves, such as TensorBoard's."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object: ...

    def close(self) -> None: ...


def tensorboard(folder: Path, update: int) -> Board:
    """Create a TensorBoard writer for a run, which drops points after `update`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "train.tensorboard = true needs the package tensorboard: pip install 'heedful[log]', or set it to false"
        ) from error
    place = folder / "tensorboard"
    try:
        return SummaryWriter(str(place), purge_step=update + 1)
    except OSError as error:
        raise cannot_write(place, error) from error


class Logger(AbstractContextManager):
    """What a trainer reports about its run; this one writes nothing, for processes that leave it to the first one."""

    def __exit__(self, *_: object) -> None:
        """Nothing is to be closed."""

    def say(self, text: str) -> None:
        """Print a line."""

    def advance(self, tokens: int, left: float = inf) -> None:
        """Count a finished update and its tokens; in `left` seconds of training the run ends whatever its updates."""

    def record(self, update: int, values: Mapping[str, float | None], seconds: float | None = None) -> None:
        """Log values of an update; `seconds` is the training time of the run so far."""

    def record_validation(self, update: int, scores: "Scores") -> None:
        """Log the scores of a validation."""

    def restart_clock(self) -> None:
        """Restart the measurement of speed, so that time spent on validation does not count."""

    def conclude(self, update: int, scores: "Scores") -> None:
        """Write the result of a run that has ended, with the scores of its final model."""


class RunLogger(Logger):
    """Logger of a training run: writes the log, timings and curves, and shows progress on the console.

    Args:
        folder: the run's folder.
        update: the update from which the run resumes; records after it are dropped.
        total: number of updates of the whole run, perhaps estimated.
        board: the writer of training curves; None: there are none.
        console: the console on which progress is shown.
    """

    def __init__(self, folder: Path, update: int, total: int, board: Board | None, console: Console) -> None:
        self.folder = folder
        self.log = Lines(folder / LOG, update)
        self.timings = Lines(folder / TIMINGS, update)
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
        for lines in (self.log, self.timings):
            try:
                lines.close()
            except OSError as error:
                self.say(f"{lines.path} lacks its last {counted(lines.missing, 'lines')} ({error.strerror})")
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
        timing = {"tokens_per_second": round(self.tokens_per_second()), "time": round(time.time())}
        self.append(self.timings, {"update": update, **timing, "seconds": seconds})
        self.draw(update, values)
        self.values = shown(values)
        self.say(f"update {update}: {self.values}, {self.speed()}")
        self.restart_clock()

    def record_validation(self, update: int, scores: "Scores") -> None:
        values = {f"valid_{key}": value for key, value in scores.items()}
        self.append(self.log, {"update": update, **values})
        self.draw(update, values)
        self.say(f"update {update}: {shown(values)}")

    def conclude(self, update: int, scores: "Scores") -> None:
        path = self.folder / RESULT
        try:
            with atomic_file(path) as stream:
                stream.write(json_line({"update": update, **scores}).encode())
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, lines: Lines, record: Mapping[str, Any]) -> None:
        """Append a record to a log file; a full disk does not end the run, and is reported once."""
        is_reported = bool(lines.waiting)
        try:
            lines.write(record)
        except OSError as error:
            if not is_reported:
                self.say(f"NOT LOGGED: {lines.path} ({error.strerror}); training goes on, and the lines wait in memory")

    def draw(self, update: int, values: Mapping[str, float | None]) -> None:
        for tag, value in values.items():
            if value is not None and self.board:
                self.curve(partial(self.board.add_scalar, tag, value, update))

    def curve(self, action: Callable[[], object]) -> None:
        """Call the TensorBoard writer; if it cannot write, report this once and stop logging to TensorBoard."""
        try:
            action()
        except OSError as error:
            self.board = None
            self.say(
                f"NO MORE CURVES: {self.folder / 'tensorboard'} ({error.strerror or error}); {LOG} has all numbers"
            )

    def tokens_per_second(self) -> float:
        """Training speed since the last record."""
        return self.tokens / (time.perf_counter() - self.since)

    def speed(self) -> str:
        return f"{self.tokens_per_second():,.0f} tokens/s"

    def restart_clock(self) -> None:
        self.since, self.tokens = time.perf_counter(), 0

    def draw_bar(self) -> None:
        """Draw the progress bar, followed by as many of the last values as fit in the line."""
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
        """Print a line above the progress bar."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def shown(values: Mapping[str, float | None]) -> str:
    """Format names and values with four significant digits."""
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if value is not None)
