"""Run folder: the checkpoints of a run, whole or of processes that share the weights, from which training resumes."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from heedful.checkpoint.checkpoint import (
    OPTIMIZER,
    STATE,
    Checkpoint,
    check_finite,
    checkpoint_files,
    facts,
    is_complete,
    is_intact,
    read_checkpoint,
)
from heedful.checkpoint.lock import Claim
from heedful.checkpoint.model_folder import WEIGHTS, description_files
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, Best, read_best
from heedful.checkpoint.tensors import part_file, part_name
from heedful.distributed import Exchange, Reducer
from heedful.errors import InputError, RunError
from heedful.storage.atomic import (
    Content,
    FolderWriter,
    atomic_file,
    discard,
    folder_writer,
    make_folders,
    named_write_errors,
    publish,
    remove,
    sweep,
    write_folder,
)
from heedful.storage.disk import DISK, Storage
from heedful.storage.manifest import DamagedError, Entry, json_text, seal


@dataclass(frozen=True)
class Rejected:
    """Damaged checkpoint: the folder where it now lies, and the reason why it was rejected."""

    folder: Path
    reason: str


@dataclass(frozen=True)
class Latest:
    """Newest intact checkpoint of a run, None if there is none yet, and the newer checkpoints that are damaged."""

    checkpoint: Checkpoint | None
    rejected: tuple[Rejected, ...] = ()


class Checkpoints:
    """Saves, loads and deletes a run's checkpoints; from the first `save` on, at least one is intact at any time.

    Args:
        run_folder: The folder of the run, locked by `claim` before anything is written.
        keep_last: Number of newest regular steps to keep. The best step and the two newest of all are kept as well.
        storage: The file system.
        every: Steps that are multiples of this are regular. Other steps are saved on a signal or by the clock; they
            do not count for `keep_last`, so that the regular steps that are kept depend on nothing but the step.
        claimed: The claim to the folder, which is checked before anything is written.

    Raises:
        InputError: `best.json` is not what was saved.
    """

    def __init__(
        self,
        run_folder: Path,
        keep_last: int,
        storage: Storage = DISK,
        every: int = 1,
        claimed: Claim | None = None,
    ) -> None:
        self.folder = run_folder / CHECKPOINTS
        self._keep_last = keep_last
        self._every = every
        self._storage = storage
        self._claim = claimed
        self._best = read_best(self.folder / BEST)

    def check_claim(self) -> None:
        """Check that the run folder is still where it was, and this process's own.

        Raises:
            RunError: It was moved, removed, or claimed by another process.
        """
        if self._claim:
            self._claim.check()

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint atomically, then delete old ones; a step that is saved already is left as it is.

        Raises:
            RunError: Writing failed, on a full disk for instance, the folder was moved, or a weight is not finite.
                Earlier checkpoints are unchanged, nothing half-written is left, and training can go on.
        """
        self.check_claim()
        folder = self.path(checkpoint.step)
        with self._saving(checkpoint.step):
            make_folders(self._storage, self.folder)
            sweep(self._storage, self.folder)
            if not folder.exists():
                check_finite(checkpoint)
                write_folder(folder, checkpoint_files(checkpoint), facts(checkpoint.step), self._storage)
            self.delete_old()

    def begin(self, step: int) -> bool:
        """Make the temporary folder of a checkpoint that several processes will write; False if the step is saved.

        Raises:
            RunError: Writing failed, or the folder was moved.
        """
        self.check_claim()
        with self._saving(step):
            make_folders(self._storage, self.folder)
            sweep(self._storage, self.folder)
            if self.path(step).exists():
                return False
            make_folders(self._storage, self.writer(step).path)
            return True

    def writer(self, step: int) -> FolderWriter:
        """Create a writer into the temporary folder that `begin` made."""
        return folder_writer(self.path(step), self._storage)

    def publish(self, step: int, writer: FolderWriter, files: Mapping[str, Content]) -> None:
        """Add files and the manifest to the temporary folder of a checkpoint, and give the folder its name.

        Raises:
            RunError: Writing failed; the temporary folder is removed as far as possible.
        """
        try:
            with self._saving(step):
                for name, content in files.items():
                    writer.write(name, content)
                writer.seal(facts(step))
                publish(self.path(step), self._storage)
        except RunError:
            self.abandon(writer)
            raise

    def abandon(self, writer: FolderWriter) -> None:
        """Remove a temporary folder, as far as possible."""
        with suppress(OSError):
            remove(self._storage, writer.path)

    def load_latest(self, strict: bool = False) -> Latest:
        """Load the newest intact checkpoint and rename newer, damaged ones to `step-N.bad`.

        Args:
            strict: Raise an error for a damaged checkpoint.

        Raises:
            DamagedError: The newest is damaged and `strict` is set; or there are checkpoints and none is intact, which
                must not look like a run that has not begun.
            InputError: Another version of heedful wrote the checkpoint.
            RunError: A damaged checkpoint cannot be renamed.
        """
        damaged: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                checkpoint = read_checkpoint(self.path(step), step)
            except DamagedError as error:
                if strict:
                    raise
                damaged[step] = error.reason
            else:
                return Latest(checkpoint, tuple(self._put_aside(*item) for item in damaged.items()))
        if damaged:
            reasons = "; ".join(f"step {step}: {reason}" for step, reason in damaged.items())
            raise DamagedError(self.folder, f"holds no intact checkpoint ({reasons})")
        return Latest(None)

    def load_until(self, step: int) -> Checkpoint | None:
        """Load the newest intact checkpoint of a step or before; None if there is none. Nothing is renamed.

        Raises:
            InputError: Another version of heedful wrote the checkpoint.
        """
        for found in reversed([saved for saved in self.steps() if saved <= step]):
            with suppress(DamagedError):
                return read_checkpoint(self.path(found), found)
        return None

    def mark_best(self, step: int, metric: str, value: float) -> None:
        """Mark a saved step as the best checkpoint: it is not deleted before another step is marked.

        Raises:
            RunError: The step is not saved, writing failed, or the folder was moved.
        """
        self.check_claim()
        if not self.path(step).is_dir():
            raise RunError(f"step {step} is not saved in {self.folder}: it cannot be marked as the best")
        best = Best(step, metric, value)
        try:
            with atomic_file(self.folder / BEST, self._storage) as stream:
                stream.write(seal(asdict(best)))
        except OSError as error:
            raise self._failed(f"mark step {step} as the best", error) from error
        self._best = best

    @property
    def best(self) -> Best | None:
        """The best step of the run with its metric; None if no step is marked or its checkpoint is gone."""
        return self._best if self._best and self.path(self._best.step).is_dir() else None

    def lost(self, steps: Iterable[int]) -> set[int]:
        """Select the steps whose checkpoint is missing or has a changed byte."""
        return {step for step in steps if not is_intact(self.path(step))}

    def steps(self) -> list[int]:
        """List the saved steps of the run, in order."""
        if not self.folder.is_dir():
            return []
        matches = (re.fullmatch(r"step-(\d{8,})", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def path(self, step: int) -> Path:
        """Folder in which the checkpoint of a step is saved."""
        return self.folder / f"step-{step:08d}"

    def delete_old(self) -> None:
        """Delete the checkpoints that need not be kept.

        Raises:
            OSError: Deleting failed.
        """
        steps = self.steps()
        complete = [step for step in steps if is_complete(self.path(step))]
        regular = [step for step in steps if step % self._every == 0]
        kept = {*regular[-self._keep_last :], *complete[-2:]} | ({self._best.step} if self._best else set())
        for step in steps:
            if step not in kept:
                discard(self._storage, self.path(step))

    def _put_aside(self, step: int, reason: str) -> Rejected:
        folder = self.path(step)
        bad = folder.with_name(folder.name + ".bad")
        try:
            remove(self._storage, bad)
            self._storage.rename(folder, bad)
            self._storage.flush(self.folder)
        except OSError as error:
            raise self._failed(f"put the damaged step {step} aside", error) from error
        return Rejected(bad, reason)

    @contextmanager
    def _saving(self, step: int) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed(f"save step {step}", error) from error

    def _failed(self, action: str, error: OSError) -> RunError:
        return RunError(
            f"cannot {action} in {self.folder} ({error.strerror}): checkpoints saved before are safe; "
            "look at the disk's free space and rights"
        )


def put_aside_damaged_mark(run_folder: Path) -> Rejected | None:
    """Rename a damaged `best.json` to `best.json.bad`, so that a run can go on and mark its best checkpoint again.

    Returns:
        The damaged mark; None if it is whole or there is none.

    Raises:
        RunError: It cannot be renamed.
    """
    path = run_folder / CHECKPOINTS / BEST
    try:
        read_best(path)
    except InputError:
        bad = path.with_name(path.name + ".bad")
        with named_write_errors(bad):
            path.replace(bad)
        return Rejected(bad, f"{BEST} does not hold what was saved")
    return None


class CheckpointStore(Protocol):
    """Interface of what saves the checkpoints of a run."""

    @property
    def best(self) -> Best | None:
        """The best step of the run with its metric; None if no step is marked."""
        ...

    def steps(self) -> list[int]:
        """List the saved steps of the run, in order."""
        ...

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint, then delete old ones."""
        ...

    def mark_best(self, step: int, metric: str, value: float) -> None:
        """Mark a saved step as the best checkpoint."""
        ...


class ShardedCheckpoints:
    """Saves checkpoints of which each process holds some rows. All processes call the same methods.

    The folder is there with all files, or it is not there: every process writes and flushes its files, then the first
    one writes the manifest of all and renames the folder. An error of one process is an error of all.

    Args:
        checkpoints: The checkpoints of the run, in a folder that all processes see.
        exchange: Joins the processes; no other thread uses it at the same time.
    """

    def __init__(self, checkpoints: Checkpoints, exchange: Exchange) -> None:
        self._checkpoints = checkpoints
        self._exchange = exchange

    @property
    def best(self) -> Best | None:
        """The best step of the run with its metric; None if no step is marked or its checkpoint is gone."""
        found = self._exchange.from_first(lambda: self._checkpoints.best and asdict(self._checkpoints.best))
        return Best(**found) if found else None

    def steps(self) -> list[int]:
        """List the saved steps of the run, in order."""
        return self._exchange.from_first(self._checkpoints.steps)

    def mark_best(self, step: int, metric: str, value: float) -> None:
        """Mark a saved step as the best checkpoint: it is not deleted before another step is marked.

        Raises:
            RunError: The step is not saved, or writing failed.
        """
        self._by_first(lambda: self._checkpoints.mark_best(step, metric, value))

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint atomically, then delete old ones; a step that is saved already is left as it is.

        Raises:
            RunError: A process could not write, or a weight is not finite. Earlier checkpoints are unchanged.
        """
        step = checkpoint.step
        if self._by_first(lambda: self._checkpoints.begin(step)):
            told = self._exchange.gather(self._write_rows(checkpoint))
            self._by_first(lambda: self._publish(checkpoint, told))
        self._by_first(self._checkpoints.delete_old)

    def _write_rows(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Write and flush the rows of this process; return the entries of its files, or an error, as JSON."""
        rank, world_size, first = self._exchange.rank, self._exchange.world_size, self._exchange.is_first
        writer = self._checkpoints.writer(checkpoint.step)
        try:
            check_finite(checkpoint)
            if not writer.path.is_dir():
                raise RunError(f"process {rank} does not see {writer.path}: all machines need one folder for the run")
            for name, tensors in ((WEIGHTS, checkpoint.weights), (OPTIMIZER, checkpoint.optimizer)):
                writer.write(part_name(name, rank, world_size), part_file(tensors, is_first=first))
            writer.flush()
        except OSError as error:
            return {"error": f"process {rank} cannot write {writer.path} ({error.strerror})"}
        except RunError as error:
            return {"error": str(error)}
        return {"files": {name: vars(entry) for name, entry in writer.entries.items()}}

    def _publish(self, checkpoint: Checkpoint, told: list[dict[str, Any]]) -> None:
        """Add the other files and the manifest to those of all processes, and give the folder its name."""
        errors = [one["error"] for one in told if "error" in one]
        writer = self._checkpoints.writer(checkpoint.step)
        if errors:
            self._checkpoints.abandon(writer)
            raise RunError("; ".join(errors))
        for one in told:
            writer.entries |= {name: Entry(**entry) for name, entry in one["files"].items()}
        files = description_files(checkpoint.recipe, checkpoint.tokenizers)
        self._checkpoints.publish(checkpoint.step, writer, {**files, STATE: [json_text(checkpoint.state)]})

    def _by_first(self, action: Callable[[], Any]) -> Any:
        """Let the first process do something; its error is raised in all processes."""

        def attempt() -> list[Any]:
            try:
                return [action(), None]
            except RunError as error:
                return [None, str(error)]
            except OSError as error:
                return [None, f"cannot write the checkpoints of the run ({error.strerror})"]

        value, error = self._exchange.from_first(attempt)
        if error is not None:
            raise RunError(error)
        return value


def store_of(checkpoints: Checkpoints, reducer: Reducer) -> CheckpointStore:
    """Choose what saves the checkpoints of a run: all processes if they share the weights, else the first one.

    What is returned may be called in another thread than that of the training; all processes must call this function.
    """
    return checkpoints if reducer.mesh is None else ShardedCheckpoints(checkpoints, reducer.for_a_thread())
