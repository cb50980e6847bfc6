"""Run folder: the checkpoints of a run, whole or of processes that share the weights, from which training resumes.

A checkpoint is a folder that is there with all its files, or is not there: its files are written and flushed in a
temporary folder, the manifest with their checksums last, and one rename gives the folder its name. No pickle is read.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from heedful.checkpoint.lock import Claim
from heedful.checkpoint.model_folder import WEIGHTS, description_files, model_files, read_description, read_weights
from heedful.checkpoint.run_layout import BEST, CHECKPOINTS, Best, checkpoint_folders, read_best, step_of
from heedful.checkpoint.tensors import part_file, part_name, read_whole, tensor_file
from heedful.config.schema import Recipe
from heedful.distributed import Exchange, Reducer, local
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
from heedful.storage.disk import DISK, MAX_SETTINGS_BYTES, Storage
from heedful.storage.manifest import DamagedError, Entry, check, check_sizes, json_text, parse, read_manifest, seal
from heedful.text.tokenizer_pair import TokenizerPair

OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Checkpoint of a training run: all that is needed to resume the training."""

    step: int  # updates made
    recipe: Recipe
    tokenizers: TokenizerPair
    weights: dict[str, Tensor]  # float32 masters; after loading they are on the CPU, as is the optimizer's state
    optimizer: dict[str, Tensor]
    state: dict[str, Any]  # strict JSON: no tuples, keys that are strings, no NaN; floats come back to the last bit


def read_checkpoint(folder: Path, step: int) -> Checkpoint:
    """Read the checkpoint of a step, verified; a DamagedError says what is not as it was saved."""
    manifest = read_manifest(folder)
    if manifest.facts.get("step") != step:
        raise DamagedError(folder, "holds another step")
    recipe, tokenizers = read_description(manifest)
    return Checkpoint(
        step=step,
        recipe=recipe,
        tokenizers=tokenizers,
        weights=read_weights(manifest),
        optimizer=read_whole(manifest, OPTIMIZER),
        state=parse(manifest.verified(STATE, MAX_SETTINGS_BYTES), _document),
    )


def _document(data: bytes) -> dict[str, Any]:
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("no document")
    return document


def passes(check: Callable[[Path], object], folder: Path) -> bool:
    """True if a folder passes a check of `storage.manifest`: of the sizes of its files, or of every byte."""
    try:
        check(folder)
    except InputError:
        return False
    return True


def check_finite(checkpoint: Checkpoint) -> None:
    """Check that all weights of a checkpoint that this process holds are finite: no other may replace a good one."""
    for name, value in checkpoint.weights.items():
        # not by torch, whose threads, if a second team of them waits next to those of training, slow it down
        if not np.isfinite(local(value).float().numpy(force=True)).all():
            raise RunError(
                f"step {checkpoint.step} is not saved, because the weight {name} is not finite: go back to the last "
                "checkpoint with a lower learning rate"
            )


class Rejected(NamedTuple):
    """Damaged file or checkpoint: where it now is, and the reason why it was rejected."""

    folder: Path
    reason: str


class Latest(NamedTuple):
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
        """Check that the run folder is still where it was, and this process's own."""
        if self._claim:
            self._claim.check()

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint atomically, then delete old ones; a step that is saved already is left as it is.

        Raises:
            RunError: Writing failed, on a full disk for instance, the folder was moved, or a weight is not finite.
                Earlier checkpoints are unchanged, nothing half-written is left, and training can continue.
        """
        self.check_claim()
        with self._named_errors(f"save step {checkpoint.step}"):
            make_folders(self._storage, self.folder)
            sweep(self._storage, self.folder)  # what a process that was killed has left half-written
            if not self.path(checkpoint.step).exists():
                check_finite(checkpoint)
                files: dict[str, Content] = {
                    **model_files(checkpoint.recipe, checkpoint.tokenizers, checkpoint.weights),
                    OPTIMIZER: tensor_file(checkpoint.optimizer),
                    STATE: [json_text(checkpoint.state)],
                }
                write_folder(self.path(checkpoint.step), files, _facts(checkpoint.step), self._storage)
            self.delete_old()

    def begin(self, step: int) -> bool:
        """Make the temporary folder of a checkpoint that several processes will write; False if the step is saved."""
        self.check_claim()
        with self._named_errors(f"save step {step}"):
            make_folders(self._storage, self.folder)
            sweep(self._storage, self.folder)
            if self.path(step).exists():
                return False
            make_folders(self._storage, self.writer(step).path)
            return True

    def writer(self, step: int) -> FolderWriter:
        return folder_writer(self.path(step), self._storage)

    def publish(self, step: int, writer: FolderWriter, files: Mapping[str, Content]) -> None:
        """Add files and the manifest to the temporary folder of a checkpoint, and give the folder its name."""
        try:
            with self._named_errors(f"save step {step}"):
                for name, content in files.items():
                    writer.write(name, content)
                writer.seal(_facts(step))
                publish(self.path(step), self._storage)
        except RunError:
            self.abandon(writer)
            raise

    def abandon(self, writer: FolderWriter) -> None:
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
        # Damaged ones are renamed only when an intact one is found: else the run would look as if it had not begun.
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
        """Load the newest intact checkpoint of a step or before; None if there is none. Nothing is renamed."""
        for earlier in reversed([saved for saved in self.steps() if saved <= step]):
            with suppress(DamagedError):
                return read_checkpoint(self.path(earlier), earlier)
        return None

    def mark_best(self, step: int, metric: str, value: float) -> None:
        """Mark a saved step as the best checkpoint: it is not deleted before another step is marked."""
        self.check_claim()
        if not self.path(step).is_dir():
            raise RunError(f"step {step} is not saved in {self.folder}: it cannot be marked as the best")
        best = Best(step, metric, value)
        action = f"mark step {step} as the best"
        with self._named_errors(action), atomic_file(self.folder / BEST, self._storage) as stream:
            stream.write(seal(asdict(best)))
        self._best = best

    @property
    def best(self) -> Best | None:
        """The best step of the run with its metric; None if no step is marked or its checkpoint is gone."""
        return self._best if self._best and self.path(self._best.step).is_dir() else None

    def lost(self, steps: Iterable[int]) -> set[int]:
        """Select the steps whose checkpoint is missing or has a changed byte."""
        return {step for step in steps if not passes(check, self.path(step))}

    def steps(self) -> list[int]:
        return [step_of(folder) for folder in checkpoint_folders(self.folder.parent)]

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def delete_old(self) -> None:
        """Delete the checkpoints that need not be kept; an OSError says that deleting failed."""
        # Regular ones may lack files: the two newest that are complete stay, too, and the best one.
        steps = self.steps()
        complete = [step for step in steps if passes(check_sizes, self.path(step))]
        regular = [step for step in steps if step % self._every == 0]
        keep = {*regular[-self._keep_last :], *complete[-2:]} | ({self._best.step} if self._best else set())
        for step in steps:
            if step not in keep:
                discard(self._storage, self.path(step))

    def _put_aside(self, step: int, reason: str) -> Rejected:
        folder = self.path(step)
        bad = folder.with_name(folder.name + ".bad")
        with self._named_errors(f"put the damaged step {step} aside"):
            remove(self._storage, bad)
            self._storage.rename(folder, bad)
            self._storage.flush(self.folder)
        return Rejected(bad, reason)

    @contextmanager
    def _named_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"cannot {action} in {self.folder} ({error.strerror}): checkpoints saved before are safe; "
                "look at the disk's free space and rights"
            ) from error


def _facts(step: int) -> dict[str, Any]:
    return {"kind": "checkpoint", "step": step}


def put_aside_damaged_mark(run_folder: Path) -> Rejected | None:
    """Rename a damaged `best.json` to `best.json.bad`, so that a run can resume and mark its best checkpoint again."""
    path = run_folder / CHECKPOINTS / BEST
    try:
        read_best(path)
    except InputError:
        bad = path.with_name(path.name + ".bad")
        with named_write_errors(bad):
            path.replace(bad)
        return Rejected(bad, f"{BEST} does not hold what was saved")
    return None


class ShardedCheckpoints:
    """Saves checkpoints of which each process holds some rows. All processes call the same methods.

    Every process writes and flushes its files, then the first one writes the manifest of all and renames the folder.
    An error of one process is an error of all.

    Args:
        checkpoints: The checkpoints of the run, in a folder that all processes see.
        exchange: Joins the processes; no other thread uses it at the same time.
    """

    def __init__(self, checkpoints: Checkpoints, exchange: Exchange) -> None:
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
        """Save a checkpoint atomically, then delete old ones; a step that is saved already is left as it is."""
        if self._on_rank_zero(lambda: self._checkpoints.begin(checkpoint.step)):
            parts = self._exchange.all_gather(self._write_rows(checkpoint))
            self._on_rank_zero(lambda: self._publish(checkpoint, parts))
        self._on_rank_zero(self._checkpoints.delete_old)

    def _write_rows(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Write and flush the rows of this process; return the entries of its files, or an error, as JSON."""
        rank, world_size = self._exchange.rank, self._exchange.world_size
        writer = self._checkpoints.writer(checkpoint.step)
        try:
            check_finite(checkpoint)
            if not writer.path.is_dir():
                raise RunError(f"process {rank} does not see {writer.path}: all machines need one folder for the run")
            for name, tensors in ((WEIGHTS, checkpoint.weights), (OPTIMIZER, checkpoint.optimizer)):
                writer.write(part_name(name, rank, world_size), part_file(tensors, is_rank_zero=rank == 0))
            writer.flush()
        except OSError as error:
            return {"error": f"process {rank} cannot write {writer.path} ({error.strerror})"}
        except RunError as error:
            return {"error": str(error)}
        return {"files": {name: vars(entry) for name, entry in writer.entries.items()}}

    def _publish(self, checkpoint: Checkpoint, parts: list[dict[str, Any]]) -> None:
        """Add the other files and the manifest to those of all processes, and give the folder its name."""
        errors = [part["error"] for part in parts if "error" in part]
        writer = self._checkpoints.writer(checkpoint.step)
        if errors:
            self._checkpoints.abandon(writer)
            raise RunError("; ".join(errors))
        for part in parts:
            writer.entries |= {name: Entry(**entry) for name, entry in part["files"].items()}
        files = description_files(checkpoint.recipe, checkpoint.tokenizers)
        self._checkpoints.publish(checkpoint.step, writer, {**files, STATE: [json_text(checkpoint.state)]})

    def _on_rank_zero(self, action: Callable[[], Any]) -> Any:
        """Let the first process do something; its error is raised in all processes."""

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


CheckpointStore = Checkpoints | ShardedCheckpoints  # what saves the checkpoints of a run


def store_of(checkpoints: Checkpoints, reducer: Reducer) -> CheckpointStore:
    """Choose what saves the checkpoints of a run: all processes if they share the weights, else the first one.

    What is returned may be called in another thread than that of the training; all processes must call this function.
    """
    return checkpoints if reducer.mesh is None else ShardedCheckpoints(checkpoints, reducer.for_a_thread())
