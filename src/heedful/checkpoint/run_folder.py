"""Run folder: saves the checkpoints of a run, from which training resumes as if it had never stopped.

The folder `checkpoints/` holds

- `step-00012000/`: a model folder with two more files, `optimizer.safetensors` and `state.json`;
- `step-00011000.bad/`: a checkpoint that was found damaged and renamed;
- `best.json`: the best step, with its metric and value.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from heedful.checkpoint.checkpoint import (
    Checkpoint,
    check_finite,
    checkpoint_files,
    facts,
    is_complete,
    is_intact,
    read_checkpoint,
)
from heedful.checkpoint.lock import Claim
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, Best, read_best
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
from heedful.storage.manifest import DamagedError, seal


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
