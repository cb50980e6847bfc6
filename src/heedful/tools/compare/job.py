"""Job of the process that trains and measures one system, its result, and the process itself."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import FrameType
from typing import Any

from heedful.config.load import make_recipe, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.storage.atomic import atomic_file, named_write_errors
from heedful.storage.manifest import json_text
from heedful.training.logger import strict
from heedful.training.signals import Interruption

METHOD = "3"  # of measuring; results by another are measured again


@dataclass(frozen=True)
class Job:
    recipe: Recipe  # with the budget; its `data.test` is the test set of the comparison
    folder: Path  # the run to train or to resume, or the trained run or model to load
    data: Path | None  # the prepared training data, which all systems share; None for a model of other training data
    trains: bool  # True if the system is trained; False if it is only loaded
    result: Path
    # SHA-256 of the training data, of the test set, and of the model of a trained system, and the method of
    # measuring: where one differs, an earlier result is that of another job
    inputs: dict[str, str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        paths = {"folder": str(self.folder), "data": self.data and str(self.data), "result": str(self.result)}
        return {"recipe": recipe_to_dict(self.recipe), "trains": self.trains, "inputs": self.inputs, **paths}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Job":
        """Read a job that `to_json` gave; a user's class that the recipe names is imported."""
        data = values["data"]
        return cls(
            recipe=make_recipe(values["recipe"]),
            folder=Path(values["folder"]),
            data=Path(data) if data else None,
            trains=values["trains"],
            result=Path(values["result"]),
            inputs=values["inputs"],
        )


@dataclass(frozen=True, kw_only=True)
class TestResult:
    __test__ = False  # no test, whatever pytest makes of the name

    count: int  # sentences or other examples of the test set
    scores: dict[str, float]  # scores by name, as `heedful evaluate` prints them
    seconds: float  # time that decoding took or, where no text is written, scoring
    tokens: int  # tokens that were written, <eos> included; where no text is written, those of the batches
    # for tasks from text to text, lists of "source", "reference" and "output" texts, in their order
    texts: dict[str, list[str]] | None = None
    lengths: list[int] | None = None  # for tasks from text to text, tokens of each source
    # for scores that are means over texts, the score of each text, by name
    figures: dict[str, list[float]] | None = None
    draws: dict[str, Any] | None = None  # for other scores of single examples, what `BootstrapScores` holds
    language: str | None = None  # for translations, the target language of BLEU and chrF, else None
    absent: list[str] | None = None  # for outputs that are classes, those without an example in the test set


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of a trained system; None for what is not known."""

    parameters: int
    kinds: dict[str, int]  # number of parameters by kind, such as "embeddings"
    precision: str  # number format of the training, such as "float32"
    updates: int | None
    seconds: float | None  # training time of the run, validation not counted
    tokens: int | None  # tokens that the training has read
    peak_memory: int | None  # most memory of the training, in bytes; of the process, or of the GPU
    flops_per_update: float | None
    flops_per_example: float  # FLOPs of writing one text; where no text is written, of reading one example
    environment: dict[str, str | int]  # software and hardware, as `machine.environment` gives them
    test: TestResult


@dataclass
class Result:
    """Result of a job so far: the measurements, or the error that ended it."""

    job: dict[str, Any] = field(default_factory=dict)  # the job, as JSON values
    peak_memory: int | None = None  # most memory in bytes that any process of the training has needed so far
    measured: Measured | None = None
    error: str | None = None

    @classmethod
    def read(cls, path: Path) -> "Result":
        """Read the result of a job; an empty one if there is none that can be read."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            stored = values["measured"]
            measured = stored and Measured(**{**stored, "test": TestResult(**stored["test"])})
            return cls(**{**{name.name: values[name.name] for name in fields(cls)}, "measured": measured})
        except (OSError, ValueError, KeyError, TypeError):  # also of another version
            return cls()

    def write(self, path: Path) -> None:
        write_bytes(path, json.dumps(asdict(self)).encode())  # with NaN, which the score of a diverged model can be

    def is_done(self, job: Job) -> bool:
        return self.measured is not None and self.job == job.to_json()


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write JSON values to a file, as a whole or not at all; numbers that are not finite become null."""
    write_bytes(path, json_text(finite(values)))


def finite(value: Any) -> Any:
    """Copy nested JSON values with null in place of numbers that are not finite, which strict JSON cannot hold."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return strict(value)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all; folders above it are made."""
    with named_write_errors(path, "look at the disk's free space and rights, then give the same command again"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as stream:
            stream.write(content)


def run_process(job: Path) -> tuple[int, int | None]:
    """Run the process of a job to its end; return its exit code, and the signal that interrupted it or None.

    The code is negative for a signal that killed the process. Signals that this process gets are passed on to it.
    """
    # In a separate session, as a terminal sends Ctrl-C to all processes of one, and the second ends a training.
    # Its standard input ends when this process does, however it ends: see `end_with_parent`.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "heedful.tools.compare", str(job)], stdin=subprocess.PIPE, start_new_session=True
    )
    interruptions: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        interruptions.append(number)
        process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in Interruption.heard()}
    try:
        return process.wait(), interruptions[-1] if interruptions else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdin:
            process.stdin.close()


def end_with_parent() -> None:
    """End this process as SIGTERM does when the one that started it is gone; a training is saved before."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
