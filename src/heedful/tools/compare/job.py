"""Job of the process that trains and measures one system, its result, and the process itself."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import FrameType, TracebackType
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
    """Job of one process: a system to train, or to load, and to measure.

    Attributes:
        recipe: the recipe with the budget; its `data.test` is the test set of the comparison.
        folder: the run to train or to resume, or the trained run or model to load.
        data: the prepared training data, which all systems share; None for a model of other training data.
        trains: True if the system is trained; False if it is only loaded.
        result: the file to write the result to.
        inputs: SHA-256 of the training data, of the test set, and of the model of a trained system, and the method of
            measuring: where one differs, an earlier result is that of another job.
    """

    recipe: Recipe
    folder: Path
    data: Path | None
    trains: bool
    result: Path
    inputs: dict[str, str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Convert the job to JSON values."""
        paths = {"folder": str(self.folder), "data": self.data and str(self.data), "result": str(self.result)}
        return {"recipe": recipe_to_dict(self.recipe), "trains": self.trains, "inputs": self.inputs, **paths}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Job":
        """Read a job that `to_json` gave; a class of the user's own that the recipe names is imported.

        Raises:
            InputError: the recipe cannot work.
        """
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
    """Results of a system on the test set.

    Attributes:
        count: sentences or other examples of the test set.
        scores: scores by name, as `heedful evaluate` prints them.
        seconds: time that decoding took or, where no text is written, scoring.
        tokens: tokens that were written, <eos> included; where no text is written, those of the batches.
        texts: for tasks from text to text, lists of "source", "reference" and "output" texts, in their order.
        lengths: for tasks from text to text, tokens of each source.
        figures: for scores that are means over texts, the score of each text, by name.
        draws: for other scores of single examples, what `BootstrapScores` holds.
        language: for translations, the target language of BLEU and chrF, else None.
        absent: for outputs that are classes, those without an example in the test set.
    """

    __test__ = False  # no test, whatever pytest makes of the name

    count: int
    scores: dict[str, float]
    seconds: float
    tokens: int
    texts: dict[str, list[str]] | None = None
    lengths: list[int] | None = None
    figures: dict[str, list[float]] | None = None
    draws: dict[str, Any] | None = None
    language: str | None = None
    absent: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of a trained system; None for what is not known.

    Attributes:
        parameters: number of parameters.
        kinds: number of parameters by kind, such as "embeddings".
        precision: number format of the training, such as "float32".
        updates: training updates of the run.
        seconds: training time of the run, validation not counted.
        tokens: tokens that the training has read.
        peak_memory: most memory of the training, in bytes; of the process, or of the GPU.
        flops_per_update: FLOPs of one training update.
        flops_per_example: FLOPs of writing one text; where no text is written, of reading one example.
        environment: software and hardware, as `machine.environment` gives them.
        test: results on the test set.
    """

    parameters: int
    kinds: dict[str, int]
    precision: str
    updates: int | None
    seconds: float | None
    tokens: int | None
    peak_memory: int | None
    flops_per_update: float | None
    flops_per_example: float
    environment: dict[str, str | int]
    test: TestResult


@dataclass
class Result:
    """Result of a job so far: the measurements, or the error that ended it.

    Attributes:
        job: the job, as JSON values.
        peak_memory: most memory in bytes that any process of the training has needed so far.
        measured: the measurements, once they are made.
        error: the message of the error that ended the job.
    """

    job: dict[str, Any] = field(default_factory=dict)
    peak_memory: int | None = None
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
        """Write the result of a job.

        Raises:
            RunError: the file cannot be written.
        """
        write_bytes(path, json.dumps(asdict(self)).encode())  # with NaN, which the score of a diverged model can be

    def is_done(self, job: Job) -> bool:
        """True if this is the whole result of exactly this job."""
        return self.measured is not None and self.job == job.to_json()


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write JSON values to a file, as a whole or not at all; numbers that are not finite become null.

    Raises:
        RunError: the file cannot be written.
    """
    write_bytes(path, json_text(finite(values)))


def finite(value: Any) -> Any:
    """Copy nested JSON values with null in place of numbers that are not finite, which strict JSON cannot hold."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return strict(value)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all; folders above it are made.

    Raises:
        RunError: the file cannot be written.
    """
    with named_write_errors(path, "look at the disk's free space and rights, then give the same command again"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as stream:
            stream.write(content)


class SystemProcess:
    """Process that does the job in a file; signals that this process gets in the meantime are passed on to it.

    Args:
        job: the file of the job.
    """

    def __init__(self, job: Path) -> None:
        # In a session of its own, as a terminal sends Ctrl-C to all processes of one, and the second ends a training.
        # Its standard input ends when this process does, however it ends: see `end_with_parent`.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "heedful.tools.compare", str(job)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.signal: int | None = None

    def __enter__(self) -> "SystemProcess":
        self.before = {number: signal.signal(number, self.forward) for number in Interruption.heard()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def forward(self, number: int, _: FrameType | None) -> None:
        """Handle a signal: note it, and pass it on."""
        self.signal = number
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end of the process; return its exit code, negative for the signal that killed it."""
        return self.process.wait()


def run_process(job: Path) -> tuple[int, int | None]:
    """Run the process of a job to its end; return its exit code, and the signal that interrupted it or None."""
    with SystemProcess(job) as running:
        return running.wait(), running.signal


def end_with_parent() -> None:
    """End this process as SIGTERM does when the one that started it is gone; a training is saved before."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
