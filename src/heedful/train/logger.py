"""Logging of a training run: an exact log, timings, TensorBoard curves, and the progress bar on the terminal."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from heedful.errors import InputError
from heedful.progress import ProgressReporter, beside_bar, shortened
from heedful.storage.atomic import atomic_file
from heedful.tasks.task import Scores
from heedful.train.log_file import LOG, RESULT, TIMINGS, Lines, cannot_write, json_line
from heedful.wording import counted


@runtime_checkable
class Board(Protocol):
    """Interface of a writer of training curves, such as TensorBoard's."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Add a point to the training curve `tag`."""
        ...

    def close(self) -> None:
        """Write the remaining points and close the writer."""
        ...


class NoBoard:
    """Writer of training curves that draws nothing, for runs without TensorBoard."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Ignore a point of a training curve."""

    def close(self) -> None:
        """Close the writer; nothing is left to write."""


def tensorboard(folder: Path, update: int) -> Board:
    """Create a TensorBoard writer for a run, which drops points after `update`.

    Raises:
        InputError: the package tensorboard is not installed.
        RunError: the files of TensorBoard cannot be written.
    """
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


class Logger(AbstractContextManager, Protocol):
    """Interface of what a trainer tells about its run."""

    def say(self, text: str) -> None:
        """Print a line."""

    def advance(self, tokens: int, left: float = inf) -> None:
        """Count a finished update and its tokens; in `left` seconds of training the run ends whatever its updates."""

    def record(self, update: int, values: Mapping[str, float | None], seconds: float | None = None) -> None:
        """Log values of an update."""

    def record_validation(self, update: int, scores: Scores) -> None:
        """Log the scores of a validation."""

    def restart_clock(self) -> None:
        """Restart the measurement of speed."""

    def conclude(self, update: int, scores: Scores) -> None:
        """Write the result of a run that has ended."""


class NoLogger(Logger):
    """Logger of the processes of a run that leave it to the first one to log: it writes nothing."""

    def __exit__(self, *_: object) -> None:
        """Leave the block; nothing is to be closed."""


class RunLogger:
    """Logger of a training run: writes the log, timings and curves, and shows progress on the console.

    Args:
        folder: the run's folder.
        update: the update from which the run resumes; records after it are dropped.
        total: number of updates of the whole run, perhaps estimated.
        board: the writer of training curves.
        console: the console on which progress is shown.
    """

    def __init__(self, folder: Path, update: int, total: int, board: Board, console: Console) -> None:
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
        self.curve(self.board.close)

    def advance(self, tokens: int, left: float = inf) -> None:
        """Count a finished update and its tokens, and advance the progress bar."""
        self.tokens += tokens
        self.reporter.end_within(left)
        self.reporter.advance()
        if self.console.is_terminal:
            self.draw_bar()

    def record(self, update: int, values: Mapping[str, float | None], seconds: float | None = None) -> None:
        """Log exact values of an update, add them to the curves, and show them with the speed since the last record.

        Args:
            update: the number of the update.
            values: the values, by name.
            seconds: the training time of the run so far, for the timings; None: it is not known.
        """
        self.append(self.log, {"update": update, **values})
        timing = {"tokens_per_second": round(self.tokens_per_second()), "time": round(time.time())}
        self.append(self.timings, {"update": update, **timing, "seconds": seconds})
        self.draw(update, values)
        self.values = shown(values)
        self.say(f"update {update}: {self.values}, {self.speed()}")
        self.restart_clock()

    def record_validation(self, update: int, scores: Scores) -> None:
        """Log the scores of a validation, add them to the curves, and show them."""
        values = {f"valid_{key}": value for key, value in scores.items()}
        self.append(self.log, {"update": update, **values})
        self.draw(update, values)
        self.say(f"update {update}: {shown(values)}")

    def conclude(self, update: int, scores: Scores) -> None:
        """Write the result file of a run that has ended, with the scores of its final model.

        Raises:
            RunError: the file cannot be written.
        """
        path = self.folder / RESULT
        try:
            with atomic_file(path) as stream:
                stream.write(json_line({"update": update, **scores}).encode())
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, lines: Lines, record: Mapping[str, Any]) -> None:
        """Append a record to a log file; a full disk does not end the run, and is reported once."""
        told = bool(lines.waiting)
        try:
            lines.write(record)
        except OSError as error:
            if not told:
                self.say(f"NOT LOGGED: {lines.path} ({error.strerror}); training goes on, and the lines wait in memory")

    def draw(self, update: int, values: Mapping[str, float | None]) -> None:
        """Add a point to each training curve."""
        for tag, value in values.items():
            if value is not None:
                self.curve(partial(self.board.add_scalar, tag, value, update))

    def curve(self, action: Callable[[], object]) -> None:
        """Call the TensorBoard writer; if it cannot write, report this once and stop logging to TensorBoard."""
        try:
            action()
        except OSError as error:
            self.board = NoBoard()
            self.say(
                f"NO MORE CURVES: {self.folder / 'tensorboard'} ({error.strerror or error}); {LOG} has all numbers"
            )

    def tokens_per_second(self) -> float:
        """Training speed in tokens per second since the last record."""
        return self.tokens / (time.perf_counter() - self.since)

    def speed(self) -> str:
        """Format the training speed since the last record."""
        return f"{self.tokens_per_second():,.0f} tokens/s"

    def restart_clock(self) -> None:
        """Restart the measurement of speed, so that time spent on validation does not count."""
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
