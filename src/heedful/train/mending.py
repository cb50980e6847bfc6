"""Mending of a run folder whose small files are damaged: a run goes on without what it can make again, and says so."""

from collections.abc import Iterator
from pathlib import Path

from heedful.checkpoint import Checkpoint
from heedful.checkpoint.run_folder import put_aside_damaged_mark
from heedful.storage.atomic import named_write_errors
from heedful.train.log_file import LOG, TIMINGS, LogMark, has_damaged_lines, is_as_marked


def mend_mark(folder: Path) -> Iterator[str]:
    """Put a damaged mark of the best checkpoint aside; the run marks it again from its newest checkpoint.

    Yields:
        What was done.

    Raises:
        RunError: the folder cannot be written.
    """
    if damaged := put_aside_damaged_mark(folder):
        yield f"{damaged.reason}: put aside as {damaged.folder}, and the best checkpoint is marked again"


def mend_logs(folder: Path, saved: Checkpoint | None) -> Iterator[str]:
    """Put damaged logs aside; scores in them that the rest of the run needs are computed again.

    Args:
        folder: the folder of the run.
        saved: the checkpoint that the run goes on from; it knows how the log began.

    Yields:
        What was done.

    Raises:
        RunError: the folder cannot be written.
    """
    if is_damaged(folder / LOG, saved):
        yield put_aside(folder / LOG) + ", and the log begins anew; the model does not depend on it"
    if has_damaged_lines(folder / TIMINGS):
        yield put_aside(folder / TIMINGS) + ", and the timings begin anew"


def is_damaged(log: Path, saved: Checkpoint | None) -> bool:
    """True if a log does not begin as it was when a checkpoint was saved; what comes after that is written again."""
    mark = saved.state.get("log") if saved else None
    if mark is None:  # of an older version, or the run is at its begin
        return has_damaged_lines(log)
    return not is_as_marked(log, LogMark(**mark))


def put_aside(path: Path) -> str:
    """Rename a damaged file, if it is still there; return a clause that says so."""
    bad = path.with_name(path.name + ".bad")
    if not path.exists():
        return f"{path} is gone"
    with named_write_errors(bad):
        path.replace(bad)
    return f"{path} is damaged: put aside as {bad}"
