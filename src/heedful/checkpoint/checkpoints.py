"""Checkpoints of a run: which ones are kept, which one is the best, and which one training resumes from."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from heedful.checkpoint.description import read_description
from heedful.checkpoint.lock import Claim
from heedful.checkpoint.model_folder import read_weights
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, Best, checkpoint_folders, read_best, step_of
from heedful.checkpoint.safetensors_format import read_whole
from heedful.checkpoint.save import OPTIMIZER, STATE, Checkpoint, seal_shards, write_checkpoint, write_shard
from heedful.distributed.reducer import Reducer
from heedful.errors import InputError, RunError
from heedful.storage.atomic import (
    FolderWriter,
    atomic_file,
    discard,
    make_folders,
    named_write_errors,
    publish,
    remove,
    remove_leftovers,
)
from heedful.storage.complete_folder import DamagedError, Entry, is_complete, is_intact, parse_file, read_manifest, seal
from heedful.storage.disk import DISK, MAX_SETTINGS_BYTES, Storage


class Rejected(NamedTuple):
    """Damaged file or checkpoint that has been renamed: its new path, and the reason."""

    path: Path
    reason: str


class Latest(NamedTuple):
    """Newest intact checkpoint of a run (None if nothing is saved yet), and the newer ones, damaged and renamed."""

    checkpoint: Checkpoint | None
    rejected: tuple[Rejected, ...] = ()


class Checkpoints:
    """Checkpoints of a run, which it saves, loads and deletes.

    After the first `save`, neither a crash nor a full disk leaves the run without an intact checkpoint.

    Args:
        run_folder: The run folder, locked by `claim` before anything is written.
        keep_last: The number of newest regular steps to keep. The best step and the two newest complete steps are kept
            as well.
        storage: The file system; tests pass one that fails.
        every: Steps that are multiples of this are regular. Other steps, saved on a signal or after a certain time, do
            not count towards `keep_last`, so timing does not determine which regular steps are kept.
        claimed: The claim to the folder, checked before each write; None to skip the check.
    """

    def __init__(
        self, run_folder: Path, keep_last: int, storage: Storage = DISK, every: int = 1, claimed: Claim | None = None
    ) -> None:
        self.folder = run_folder / CHECKPOINTS
        self._keep_last = keep_last
        self._every = every
        self._storage = storage
        self._claim = claimed
        self._best = read_best(self.folder / BEST)

    def check_claim(self) -> None:
        """Check that the run folder has not been moved, and that this process still holds its lock."""
        if self._claim:
            self._claim.check()

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint atomically, then delete old ones; a step that is already saved is left unchanged.

        Raises:
            RunError: Writing failed (for instance on a full disk), a weight is not finite, or the run folder was moved
                or claimed by another process. Earlier checkpoints are unchanged, and training can continue.
        """
        with self._named_errors(f"save step {checkpoint.step}"):
            if self._prepare(checkpoint.step):
                write_checkpoint(self.path(checkpoint.step), checkpoint, self._storage)
            # Even if the step is already saved: an earlier process may have been killed before it deleted old ones.
            self.delete_old()

    def begin(self, step: int) -> bool:
        """Create the temporary folder in which several processes save a step; return False if the step is saved."""
        with self._named_errors(f"save step {step}"):
            is_new = self._prepare(step)
            if is_new:
                make_folders(self._storage, self.writer(step).path)
            return is_new

    def _prepare(self, step: int) -> bool:
        """Create the checkpoints folder, and remove leftovers from it; return False if the step is already saved."""
        self.check_claim()
        make_folders(self._storage, self.folder)
        remove_leftovers(self._storage, self.folder)
        return not self.path(step).exists()

    def writer(self, step: int) -> FolderWriter:
        return FolderWriter(self.path(step), self._storage)

    def publish(self, checkpoint: Checkpoint, writer: FolderWriter) -> None:
        """Complete the temporary folder of a checkpoint that several processes wrote, and rename it to its final name.

        If that fails, the temporary folder is removed.
        """
        try:
            with self._named_errors(f"save step {checkpoint.step}"):
                seal_shards(writer, checkpoint)
                publish(self.path(checkpoint.step), self._storage)
        except RunError:
            self.abandon(writer)
            raise

    def abandon(self, writer: FolderWriter) -> None:
        with suppress(OSError):
            remove(self._storage, writer.path)

    def load_latest(self, strict: bool = False) -> Latest:
        """Load the newest intact checkpoint, and rename newer, damaged ones to `step-N.bad`.

        Args:
            strict: If True, raise an error for a damaged checkpoint instead of renaming it.

        Raises:
            DamagedError: The newest checkpoint is damaged and `strict` is True, or none of the checkpoints is intact.
            InputError: A different version of heedful wrote the checkpoint.
            RunError: A damaged checkpoint cannot be renamed.
        """
        # Damaged checkpoints are renamed only if an intact one exists: otherwise the run would look like a new one.
        damaged: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                checkpoint = read_checkpoint(self.path(step), step)
            except DamagedError as error:
                if strict:
                    raise
                damaged[step] = error.reason
                continue
            rejected = []
            for bad_step, reason in damaged.items():
                folder = self.path(bad_step)
                bad = folder.with_name(folder.name + ".bad")
                with self._named_errors(f"rename the damaged step {bad_step}"):
                    # An earlier save of the same step may have been damaged and renamed as well.
                    remove(self._storage, bad)
                    self._storage.rename(folder, bad)
                    self._storage.flush(self.folder)
                rejected.append(Rejected(bad, reason))
            return Latest(checkpoint, tuple(rejected))
        if damaged:
            reasons = "; ".join(f"step {step}: {reason}" for step, reason in damaged.items())
            remedy = "restore one from an intact copy, or start a new run in another folder"
            raise DamagedError(self.folder, f"contains no intact checkpoint ({reasons})", remedy)
        return Latest(None)

    def load_until(self, step: int) -> Checkpoint | None:
        """Load the newest intact checkpoint at or before a step, or return None. Damaged ones are not renamed."""
        for earlier in reversed([saved for saved in self.steps() if saved <= step]):
            with suppress(DamagedError):
                return read_checkpoint(self.path(earlier), earlier)
        return None

    def mark_best(self, step: int, metric: str, value: float) -> None:
        """Mark a saved step as the best checkpoint, which is kept until another step is marked."""
        self.check_claim()
        if not self.path(step).is_dir():
            raise RunError(f"step {step} is not saved in {self.folder}: it cannot be marked as the best")
        best = Best(step, metric, value)
        action = f"mark step {step} as the best"
        with self._named_errors(action), atomic_file(self.folder / BEST, self._storage) as stream:
            stream.write(seal(asdict(best)))
        # Set only after the file is written: if that fails, `delete_old` keeps the checkpoint that the old file marks.
        self._best = best

    @property
    def best(self) -> Best | None:
        """The best step of the run and its metric; None if no step is marked, or if its checkpoint does not exist."""
        return self._best if self._best and self.path(self._best.step).is_dir() else None

    def lost(self, steps: Iterable[int]) -> set[int]:
        """Read every byte of the checkpoints of `steps`; return the steps whose checkpoint is missing or damaged."""
        return {step for step in steps if not is_intact(self.path(step))}

    def steps(self) -> list[int]:
        return [step_of(folder) for folder in checkpoint_folders(self.folder.parent)]

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def delete_old(self) -> None:
        """Delete the checkpoints that need not be kept; raise OSError if deleting fails."""
        # The regular checkpoints may be damaged, so the two newest complete ones are kept as well.
        steps = self.steps()
        complete = [step for step in steps if is_complete(self.path(step))]
        regular = [step for step in steps if step % self._every == 0]
        keep = {*regular[-self._keep_last :], *complete[-2:]} | ({self._best.step} if self._best else set())
        for step in steps:
            if step not in keep:
                discard(self._storage, self.path(step))

    @contextmanager
    def _named_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"cannot {action} in {self.folder} ({error.strerror}): earlier checkpoints are safe; "
                "check the disk's free space and permissions"
            ) from error


def read_checkpoint(folder: Path, step: int) -> Checkpoint:
    """Read the checkpoint of a step and verify every byte.

    Raises:
        DamagedError: A file is missing or was changed, or the folder contains a different step.
    """

    def parse_state(data: bytes) -> dict[str, Any]:
        state = json.loads(data)
        if not isinstance(state, dict):
            raise ValueError("not a JSON object")
        return state

    manifest = read_manifest(folder)
    # Checksums do not cover the folder's name: the folder may be a copy of another step.
    if manifest.facts.get("step") != step:
        raise DamagedError(folder, "contains a different step")
    recipe, tokenizers = read_description(manifest)
    return Checkpoint(
        step=step,
        recipe=recipe,
        tokenizers=tokenizers,
        weights=read_weights(manifest),
        optimizer=read_whole(manifest, OPTIMIZER),
        state=parse_file(manifest.verify(STATE, MAX_SETTINGS_BYTES), parse_state),
    )


def put_aside_damaged_mark(run_folder: Path) -> Rejected | None:
    """Rename a damaged `best.json` to `best.json.bad`, so that a run can resume and mark its best checkpoint again."""
    path = run_folder / CHECKPOINTS / BEST
    try:
        read_best(path)
    except InputError:
        bad = path.with_name(path.name + ".bad")
        with named_write_errors(bad):
            path.replace(bad)
        return Rejected(bad, f"{BEST} does not match its checksum")
    return None


class ShardedCheckpoints:
    """Checkpoints of sharded weights, of which each process holds some rows.

    All processes must call the same methods in the same order. To save, every process writes and flushes its files;
    then rank zero writes the manifest for all of them, and renames the folder. All processes raise an error of any one.

    Args:
        checkpoints: The checkpoints of the run, in a folder that all processes share.
        exchange: Reducer over the run's processes. No other thread may use it at the same time.
    """

    def __init__(self, checkpoints: Checkpoints, exchange: Reducer) -> None:
        self._checkpoints = checkpoints
        self._exchange = exchange

    @property
    def best(self) -> Best | None:
        best = self._exchange.broadcast_object(lambda: self._checkpoints.best and asdict(self._checkpoints.best))
        return Best(**best) if best else None

    def steps(self) -> list[int]:
        return self._exchange.broadcast_object(self._checkpoints.steps)

    def mark_best(self, step: int, metric: str, value: float) -> None:
        self._on_rank_zero(lambda: self._checkpoints.mark_best(step, metric, value))

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint atomically, then delete old ones; a step that is already saved is left unchanged."""
        if self._on_rank_zero(lambda: self._checkpoints.begin(checkpoint.step)):
            writer = self._checkpoints.writer(checkpoint.step)
            # A folder with a manifest counts as complete, so the manifest is written after all parts are on disk.
            parts = self._exchange.all_gather(self._write_shard(writer, checkpoint))

            def publish() -> None:
                if errors := [part["error"] for part in parts if "error" in part]:
                    self._checkpoints.abandon(writer)
                    raise RunError("; ".join(errors))
                for part in parts:
                    writer.entries |= {name: Entry(**entry) for name, entry in part["files"].items()}
                self._checkpoints.publish(checkpoint, writer)

            self._on_rank_zero(publish)
        self._on_rank_zero(self._checkpoints.delete_old)

    def _write_shard(self, writer: FolderWriter, checkpoint: Checkpoint) -> dict[str, Any]:
        """Write this process's rows; return the manifest entries of its files, or an error, as JSON."""
        # An error is returned, not raised, because the other processes would wait in `all_gather` for this one.
        rank = self._exchange.rank
        try:
            if not writer.path.is_dir():
                raise RunError(f"process {rank} cannot see {writer.path}: all machines must share the run folder")
            write_shard(writer, checkpoint, rank, self._exchange.world_size)
        except OSError as error:
            return {"error": f"process {rank} cannot write {writer.path} ({error.strerror})"}
        except RunError as error:
            return {"error": str(error)}
        return {"files": {name: vars(entry) for name, entry in writer.entries.items()}}

    def _on_rank_zero(self, action: Callable[[], Any]) -> Any:
        """Run an action on rank zero, and return its JSON value in all processes, or raise its error in all of them."""

        def attempt() -> list[Any]:
            try:
                return [action(), None]
            except RunError as error:
                return [None, str(error)]
            except OSError as error:
                return [None, f"cannot write the checkpoints of the run ({error.strerror})"]

        value, error = self._exchange.broadcast_object(attempt)
        if error is not None:
            raise RunError(error)
        return value


CheckpointStore = Checkpoints | ShardedCheckpoints


def store_of(checkpoints: Checkpoints, reducer: Reducer) -> CheckpointStore:
    """Return the store in which a run saves: `ShardedCheckpoints` if its weights are sharded, or else `checkpoints`.

    All processes must call this function. One thread other than the training thread may use the result.
    """
    return checkpoints if reducer.mesh is None else ShardedCheckpoints(checkpoints, reducer.for_a_thread())
