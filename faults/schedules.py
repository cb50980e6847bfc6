"""Random schedules of stops: a run that is stopped up to five times reads the examples of one that is not.

The sizes of data and batches, accumulation, epochs and the number of processes are random, and that number changes at
each stop; stops come anywhere, and about the ends of epochs too. The trainer plans and deals out the batches, and
goes on from its checkpoints; only the gradient is left out.
"""

import random
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tally
import toy
from rich.console import Console

from heedful.checkpoint import Checkpoints
from heedful.distributed.reducer import Reducer, SingleProcess
from heedful.tasks.parts.sequence_to_sequence import Pairs
from heedful.tasks.text_to_text import Translation
from heedful.training.trainer import Trainer
from heedful.training.training_step import Update

COUNT = 300
QUIET = Console(quiet=True)
Read = list[list[list[int]]]  # the ids of the examples of each batch of each update


class NotedPairs(Pairs):
    """Data that notes the examples of each batch."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.noted: list[list[int]] = []

    def batch(self, ids: Any, epoch: int, device: Any) -> Any:
        """Read the examples of a batch, and note their ids."""
        self.noted.append(ids.tolist())
        return super().batch(ids, epoch, device)


class ReadingTask(Translation):
    """Translation of data that notes what is read of it."""

    dataset = NotedPairs


class ReadingTrainer(Trainer):
    """Trainer that reads its batches, and leaves the weights as they are."""

    def compute(self) -> Update:
        """Read the batches of the next update."""
        self.next_batches()
        return Update([], [], [], 0, 0.0, 0.0, True)


class OneOf(SingleProcess):
    """One of several processes, whose others do the same one after the other."""

    def __init__(self, rank: int, world_size: int) -> None:
        Reducer.__init__(self, rank, world_size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Stop runs by random schedules, and compare the examples that they read."""
    asked = tally.options(__doc__, COUNT, arguments)
    found = tally.Tally(__file__, asked)
    rng = random.Random(asked.seed)
    for number in range(asked.count):
        with TemporaryDirectory() as name, found.trial(f"schedule {number} of seed {asked.seed}"):
            found.faults["stops"] += attack(Path(name), rng)
    return found.conclude()


def attack(folder: Path, rng: random.Random) -> int:
    """Read a random run whole and by a random schedule; return the number of stops.

    Raises:
        AssertionError: the examples or their order differ.
    """
    epochs = rng.randint(1, 3)
    toy.write_pairs(folder, rng.choice([1, 2, 3, 7, 31, 101]), seed=rng.randrange(1000))
    settings = {"batch_tokens": rng.randint(17, 97), "accumulate": rng.randint(1, 5), "seed": rng.randrange(1000)}
    never = {"max_updates": 10**6, "max_epochs": epochs, "save_every": 10**6, "validate_every": 10**6}
    run = Run(folder, settings | never)
    whole, ends = run.read("whole", 1, None)
    ids = sorted(example for update in whole for batch in update for example in batch)
    assert ids == [example for example in range(ids[-1] + 1) for _ in range(epochs)]
    stops = schedule(len(whole), ends, rng)
    parts: Read = []
    for stop in [*stops, None]:
        parts += run.read("parts", rng.randint(1, 4), stop)[0]
    assert parts == whole, f"stops after the updates {stops} change the examples"
    return len(stops)


def schedule(updates: int, ends: Sequence[int], rng: random.Random) -> list[int]:
    """Draw up to five updates after which a run is stopped; about half of them stand at the end of an epoch."""
    near = [end + shift for end in ends for shift in (-1, 0, 1)]
    drawn = [rng.choice(near) if rng.random() < 0.5 else rng.randint(0, updates) for _ in range(rng.randint(1, 5))]
    return sorted(min(max(stop, 0), updates) for stop in drawn)


class Run:
    """Run with random settings that only reads its examples.

    Args:
        folder: the folder of the pairs, in which the folders of runs are.
        train: the settings of training.
    """

    def __init__(self, folder: Path, train: dict[str, Any]) -> None:
        self.folder = folder
        stateless = {"name": "row_sgd"}  # since no update is made, another optimizer would lack its state
        self.recipe = toy.recipe(folder, data={"filters": {"max_tokens": 17}}, train=train, optimizer=stateless)

    def read(self, name: str, processes: int, stop: int | None) -> tuple[Read, list[int]]:
        """Begin a run, or go on from its checkpoint, in several processes, until an update or the end, and save.

        Returns: the examples of each update, and the updates at which an epoch ended.
        """
        readers = [self.open(self.folder / name, OneOf(rank, processes)) for rank in range(processes)]
        first, _ = readers[0]
        read: Read = []
        ends = []
        while not first.is_finished() and first.state.update != stop:
            dealt = [examples(trainer, task) for trainer, task in readers]
            read.append([batch for turn in zip_longest(*dealt) for batch in turn if batch is not None])
            if first.state.batch == 0:
                ends.append(first.state.update)
        first.save()
        return read, ends

    def open(self, folder: Path, reducer: OneOf) -> tuple[ReadingTrainer, ReadingTask]:
        """Open the trainer of one process with its task, at the newest checkpoint."""
        task = ReadingTask.prepare(self.recipe, self.folder / "data", lambda _: None)
        checkpoints = Checkpoints(folder, 1)
        trainer = ReadingTrainer(task, folder, checkpoints, QUIET, reducer)
        trainer.resume(checkpoints.load_latest().checkpoint)
        return trainer, task


def examples(trainer: ReadingTrainer, task: ReadingTask) -> list[list[int]]:
    """Make one update, and return the examples of the batches that the process read."""
    task.data.noted.clear()
    trainer.update()
    return list(task.data.noted)


if __name__ == "__main__":
    sys.exit(main())
