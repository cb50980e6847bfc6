"""Checkpoints of a run whose processes share the weights: each process writes its own rows, the first publishes all."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from heedful.checkpoint.checkpoint import OPTIMIZER, STATE, Checkpoint, check_finite
from heedful.checkpoint.model_folder import WEIGHTS, description_files
from heedful.checkpoint.run_folder import Checkpoints
from heedful.checkpoint.run_layout import Best
from heedful.checkpoint.tensors import part_file, part_name
from heedful.errors import RunError
from heedful.parallel import Exchange, Reducer
from heedful.storage.manifest import Entry, json_text


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
