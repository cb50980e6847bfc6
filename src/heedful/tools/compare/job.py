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
from heedful.storage.complete_folder import json_bytes
from heedful.training.logger import finite_or_none
from heedful.training.signals import Interruption

MEASUREMENT_VERSION = "3"  # version of the measurements; systems with results from another version are measured again


@dataclass(frozen=True)
class Job:
    recipe: Recipe  # with the budget; its `data.test` is the test set of the comparison
    folder: Path  # the run to train or to resume, or the trained run or model to load
    # the prepared training data, which all systems share; None for a model trained on other data, or if no system is
    # trained
    data: Path | None
    trains: bool  # True if the system is trained; False if it is only loaded
    result: Path
    # SHA-256 of the training data, of the test set, and of the model if it is only loaded, and the version of the
    # measurements: if one differs, an earlier result belongs to another job
    inputs: dict[str, str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        paths = {"folder": str(self.folder), "data": self.data and str(self.data), "result": str(self.result)}
        return {"recipe": recipe_to_dict(self.recipe), "trains": self.trains, "inputs": self.inputs, **paths}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Job":
        """Read a job that `to_json` returned. If its recipe has a custom architecture, the class is imported."""
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
    __test__ = False  # pytest would collect it as a test

    count: int  # number of sentences or other examples in the test set
    scores: dict[str, float]  # scores by name, as `heedful evaluate` prints them
    seconds: float  # time for decoding or, if no text is written, for scoring
    tokens: int  # number of generated tokens, including <eos>; if no text is written, of tokens in the batches
    # for tasks from text to text, lists of "source", "reference" and "output" texts, in the order of the test set
    texts: dict[str, list[str]] | None = None
    lengths: list[int] | None = None  # for tasks from text to text, number of tokens in each source
    # for scores that are means over texts, the score of each text, by score name
    figures: dict[str, list[float]] | None = None
    draws: dict[str, Any] | None = None  # for other scores of individual examples, the contents of `BootstrapScores`
    language: str | None = None  # for translations, the target language of BLEU and chrF, else None
    absent: list[str] | None = None  # if the outputs are classes, the classes without an example in the test set


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of a trained system; unknown ones are None."""

    parameters: int
    kinds: dict[str, int]  # number of parameters by kind, such as "embeddings"
    precision: str  # number format in training, such as "float32"
    updates: int | None
    seconds: float | None  # training time of the run, without validation
    tokens: int | None  # number of tokens read in training
    peak_memory: int | None  # peak memory in training, in bytes; of the process, or of the GPU
    flops_per_update: float | None
    flops_per_example: float  # FLOPs for writing one text; if no text is written, for reading one example
    environment: dict[str, str | int]  # software and hardware, as `machine.environment` returns them
    test: TestResult


@dataclass
class Result:
    """Result of a job so far: the measurements, or the error that ended it."""

    job: dict[str, Any] = field(default_factory=dict)  # as JSON values
    peak_memory: int | None = None  # largest peak of all training processes so far, in bytes
    measured: Measured | None = None
    error: str | None = None

    @classmethod
    def read(cls, path: Path) -> "Result":
        """Read the result of a job; return an empty result if it cannot be read."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            stored = values["measured"]
            measured = stored and Measured(**{**stored, "test": TestResult(**stored["test"])})
            return cls(**{**{field.name: values[field.name] for field in fields(cls)}, "measured": measured})
        except (OSError, ValueError, KeyError, TypeError):  # also if another version wrote it
            return cls()

    def write(self, path: Path) -> None:
        write_bytes(path, json.dumps(asdict(self)).encode())  # with NaN, which is a possible score of a diverged model

    def is_done(self, job: Job) -> bool:
        return self.measured is not None and self.job == job.to_json()


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write JSON values to a file, completely or not at all; numbers that are not finite become null."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [finite(inner) for inner in value]
        return finite_or_none(value)

    write_bytes(path, json_bytes(finite(values)))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, after creating any missing parent folders."""
    with named_write_errors(path, "check the disk's free space and permissions, then run the same command again"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as stream:
            stream.write(content)


def run_process(job: Path) -> tuple[int, int | None]:
    """Run a job in a separate process; return its exit code, and the last signal that interrupted it or None.

    The code is negative if a signal killed the job's process. Signals to this process are forwarded to the job's.
    """
    # In its own session: otherwise, Ctrl-C in a terminal would reach the job's process twice, directly and forwarded,
    # and a second signal ends training at once. The standard input of the job's process closes when the current
    # process ends in any way: see `end_with_parent`.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "heedful.tools.compare", str(job)], stdin=subprocess.PIPE, start_new_session=True
    )
    interruptions: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        interruptions.append(number)
        process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in Interruption.handled_signals()}
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
    """Start a thread that sends SIGTERM to this process when its parent ends, so that training is saved first."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
