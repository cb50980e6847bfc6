"""What a run tells: a log that is exact, timings that are not, TensorBoard, and the screen."""

import json
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from heedful.data.atomic_write import replacing
from heedful.errors import InputError, RunError
from heedful.progress import ProgressReporter, beside_bar, shortened
from heedful.tasks.task import Scores
from heedful.wording import counted

LOG = "log.jsonl"  # depends on recipe, data and machine only: an interrupted run writes the same bytes as a whole one
TIMINGS = "timings.jsonl"
RESULT = "result.json"  # of a run that has ended: its final model's scores on the validation set


class Lines:
    """A JSONL file that forgets what came after the update from which a run goes on.

    What cannot be written waits in memory and is written before the next record.

    Raises:
        RunError: the file cannot be written.
    """

    def __init__(self, path: Path, update: int) -> None:
        self.path = path
        self.waiting = b""
        try:
            kept = [line for line in _lines(path) if json.loads(line)["update"] <= update]
            with replacing(path) as stream:
                stream.write("".join(kept).encode())
            self.file = path.open("ab", buffering=0)  # so that it is known which bytes were written
        except OSError as error:
            raise cannot_write(path, error) from error

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record, which has an "update"; a number that is not finite becomes null.

        Raises:
            OSError: it waits, as the file cannot be written.
        """
        self.waiting += json_line(record).encode()
        self.flush()

    @property
    def missing(self) -> int:
        """How many lines wait."""
        return self.waiting.count(b"\n")

    def flush(self) -> None:
        """Write what waits.

        Raises:
            OSError: some of it still waits.
        """
        while self.waiting:
            self.waiting = self.waiting[self.file.write(self.waiting) :]

    def close(self) -> None:
        """Write what waits and close the file.

        Raises:
            OSError: what waited is lost.
        """
        with self.file:
            self.flush()


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    *whole, _ = path.read_text(encoding="utf-8").split("\n")
    return [f"{line}\n" for line in whole]


def json_line(record: Mapping[str, Any]) -> str:
    """A line of strict JSON, which has no NaN and no infinity: they become null."""
    return json.dumps({key: strict(value) for key, value in record.items()}, ensure_ascii=False) + "\n"


def strict(value: Any) -> Any:
    """A value that strict JSON can hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cannot_write(path: Path, error: OSError) -> RunError:
    """The error of a file that a run needs and cannot write."""
    return RunError(
        f"cannot write {path} ({error.strerror or error}): look at the disk's free space and rights; the same command "
        "goes on"
    )


def logged_scores(folder: Path, update: int) -> Scores | None:
    """The scores of a validation that stand in a run's log, to the last bit; None if there are none."""
    prefix = "valid_"
    for line in reversed(_lines(folder / LOG)):
        record = json.loads(line)
        if record["update"] == update and any(key.startswith(prefix) for key in record):
            values = {key.removeprefix(prefix): value for key, value in record.items() if key.startswith(prefix)}
            return {key: math.nan if value is None else value for key, value in values.items()}
    return None


def result(folder: Path) -> dict[str, Any]:
    """The "update" at which a run has ended and the scores of its final model; empty before the end."""
    try:
        return json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


@runtime_checkable
class Board(Protocol):
    """Where curves are drawn."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Add a point to the curve `tag`."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class NoBoard:
    """Curves that nobody asked for."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Draw nothing."""

    def close(self) -> None:
        """Nothing is left."""


def tensorboard(folder: Path, update: int) -> Board:
    """TensorBoard's writer, which drops points after `update`.

    Raises:
        InputError: the package is not installed.
        RunError: its file cannot be written.
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


class RunLogger:
    """All of these, for one run.

    Args:
        folder: the run's folder.
        update: the update from which the run goes on; what was logged after it is dropped.
        total: updates of the whole run.
        board: where curves go.
        console: where people look.
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

    def advance(self, tokens: int) -> None:
        """An update is done."""
        self.tokens += tokens
        self.reporter.advance()
        if self.console.is_terminal:
            self.draw_bar()

    def record(self, update: int, values: Mapping[str, float | None]) -> None:
        """Log exact values, draw them, and show them with the speed since the last time."""
        self.append(self.log, {"update": update, **values})
        speed = round(self.tokens_per_second())
        self.append(self.timings, {"update": update, "tokens_per_second": speed, "time": round(time.time())})
        self.draw(update, values)
        self.values = shown(values)
        self.say(f"update {update}: {self.values}, {self.speed()}")
        self.restart_clock()

    def record_validation(self, update: int, scores: Scores) -> None:
        """Log, draw and show the scores of a validation."""
        values = {f"valid_{key}": value for key, value in scores.items()}
        self.append(self.log, {"update": update, **values})
        self.draw(update, values)
        self.say(f"update {update}: {shown(values)}")

    def conclude(self, update: int, scores: Scores) -> None:
        """Write that the run has ended, and the scores of its final model.

        Raises:
            RunError: it cannot be written.
        """
        path = self.folder / RESULT
        try:
            with replacing(path) as stream:
                stream.write(json_line({"update": update, **scores}).encode())
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, lines: Lines, record: Mapping[str, Any]) -> None:
        """Write a record; a full disk does not end a run, and is told of once."""
        told = bool(lines.waiting)
        try:
            lines.write(record)
        except OSError as error:
            if not told:
                self.say(f"NOT LOGGED: {lines.path} ({error.strerror}); training goes on, and the lines wait in memory")

    def draw(self, update: int, values: Mapping[str, float | None]) -> None:
        """Add a point to each curve."""
        for tag, value in values.items():
            if value is not None:
                self.curve(partial(self.board.add_scalar, tag, value, update))

    def curve(self, action: Callable[[], object]) -> None:
        """Do something with the curves; where they cannot be written, that is told, and no more are drawn."""
        try:
            action()
        except OSError as error:
            self.board = NoBoard()
            self.say(
                f"NO MORE CURVES: {self.folder / 'tensorboard'} ({error.strerror or error}); {LOG} has all numbers"
            )

    def tokens_per_second(self) -> float:
        """Tokens a second since the last record."""
        return self.tokens / (time.perf_counter() - self.since)

    def speed(self) -> str:
        """The speed since the last record, in words."""
        return f"{self.tokens_per_second():,.0f} tokens/s"

    def restart_clock(self) -> None:
        """Leave what was done since the last record, validation for instance, out of the speed."""
        self.since, self.tokens = time.perf_counter(), 0

    def draw_bar(self) -> None:
        """Show where the run is, and behind it as much of the last values as the line has room for."""
        parts = (self.reporter.figures, self.speed(), self.values)
        sentence = ", ".join(part for part in parts if part)
        line = shortened(sentence, beside_bar(self.console.width))
        self.bar.update(self.task, completed=self.reporter.done, description=line)

    def say_progress(self, sentence: str) -> None:
        """Show how far the run is: by the bar at a terminal, elsewhere in a line."""
        if self.console.is_terminal:
            self.draw_bar()
        else:
            self.say(f"{sentence}, {self.speed()}" if self.tokens else sentence)

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def shown(values: Mapping[str, float | None]) -> str:
    """Names and values with four digits."""
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items() if value is not None)
