"""One of the processes of `test_callbacks.py`: trains with a callback that notes its process, and may fail."""

import json
import os
import sys
from pathlib import Path

from rich.console import Console

import heedful
from heedful.distributed.reducer import end_process
from heedful.errors import RunError
from heedful.training.callbacks import Callback, TrainingEvent

RANK = os.environ["RANK"]


class Noting(Callback):
    """Notes each call in the file of this process."""

    def note(self, name: str, event: TrainingEvent) -> None:
        with Path(sys.argv[1], f"calls-{RANK}").open("a") as stream:
            stream.write(f"{name} {event.update}\n")

    def on_update(self, event: TrainingEvent) -> None:
        self.note("update", event)
        if event.update == 2:
            raise ZeroDivisionError("mine")

    def on_end(self, event: TrainingEvent) -> None:
        self.note("end", event)


folder = Path(sys.argv[1])
recipe = json.loads((folder / "recipe.json").read_text())
callbacks = [Noting()] if sys.argv[2] == "all" or RANK == "0" else []
try:
    outcome = heedful.train(recipe, folder / "run", console=Console(quiet=True), callbacks=callbacks).update
except (ZeroDivisionError, RunError) as error:
    outcome = f"{type(error).__name__}: {error}"
(folder / f"outcome-{RANK}.json").write_text(json.dumps(outcome))
end_process(0)
