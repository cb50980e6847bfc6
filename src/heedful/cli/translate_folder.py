"""`heedful translate` for a folder: a job that goes on after a stop, and that processes and machines may share."""

import hashlib
import json
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedful.cli.answering import changed, load
from heedful.cli.inputs import warning_if_unknown
from heedful.cli.output import one_line
from heedful.cli.translate import OutputCounts, line_translator, translation_fields
from heedful.data.readers.files import read_lines
from heedful.data.readers.labelled import is_table
from heedful.errors import InputError, Interrupted, Terminated
from heedful.jobs import WINDOW, FolderJob, Worker, open_job
from heedful.progress import show_progress
from heedful.storage.manifest import MANIFEST
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.literal_translator import LiteralTranslator
    from heedful.predictors.translator import Translator

LOOKED_AT = 1000  # lines of the first file that tell whether the vocabulary knows the language


@dataclass(frozen=True)
class FolderTranslation:
    """Task of a process that translates a folder: model, folders and settings of the search."""

    source: Path
    output: Path
    model: str
    device: str
    precision: str
    search: dict[str, Any]  # settings that are not those of the model
    as_json: bool  # results are lines of JSON
    shard_lines: int  # lines that a worker translates at a time
    literals: bool  # leave what is not language as it is, in plain results

    def open(self, done: Callable[[int], object] = lambda _: None) -> tuple["FolderJob", "FolderTranslator"]:
        """Load the model and begin the job, or join it; one that was begun with another model is refused."""
        from heedful.predictors.translator import Translator

        loaded = load(self.model, self.device, self.precision)
        translator = loaded.use_as(Translator)
        translator.config = changed(loaded, "decode", self.search).decode
        settings = {
            "model": hashlib.sha256((loaded.path / MANIFEST).read_bytes()).hexdigest(),
            "device": translator.device.type,
            "precision": self.precision,
            "json": self.as_json,
            **asdict(translator.config),
        }
        lines = line_translator(translator, self.literals and not self.as_json)
        if lines is not translator:
            settings["literals"] = True
        job = open_job(self.source, self.output, settings, self.shard_lines, done)
        return job, FolderTranslator(translator, lines, self.as_json)


class FolderTranslator:
    """Translates lines for a job, and counts lines that are too long and translations that are empty."""

    def __init__(self, translator: "Translator", lines: "Translator | LiteralTranslator", as_json: bool) -> None:
        self.translator = translator
        self.lines = lines
        self.counts = OutputCounts()
        self.truncated = 0
        self._as_json = as_json

    def __call__(self, lines: Iterable[str], done: Callable[[int], object]) -> Iterator[str]:

        for translation in self.lines.translate_lines(lines, WINDOW, done):
            self.counts.add(translation)
            self.truncated += translation.truncated
            if self._as_json:
                fields = translation_fields(translation, self.translator.tokenizers.target)
                yield json.dumps(fields, ensure_ascii=False)
            else:
                yield one_line(translation.text)

    def warn(self, model: str) -> None:
        """Warn of lines that are too long, and of empty translations, among those of this process."""
        if self.truncated:
            typer.echo(
                f"heedful: {counted(self.truncated, 'lines')} were too long: only {self.translator.longest_source - 1} "
                "tokens of a line are translated; split long lines into sentences",
                err=True,
            )
        self.counts.warn(model, self.translator)


def translate_folder(task: FolderTranslation, ray: bool) -> None:
    """Translate the files of a folder until all are done, by this process, others, or the machines of a Ray cluster."""
    with stopping(task.output):
        with show_progress(f"reading {task.source}", "lines") as reading:
            job, translator = task.open(reading.advance)
        # Warns if the vocabulary does not know the beginning of the first file that is not translated yet.
        for file in job.unfinished()[:1]:
            beginning = islice(read_lines(task.source / file), LOOKED_AT)
            for _ in warning_if_unknown(beginning, translator.translator.tokenizers.source):
                pass
        missing = sum(shard.lines for file in job.plan.files for shard in job.missing(file))
        done = job.plan.lines - missing
        with show_progress(f"translating {task.source}", "lines", job.plan.lines, done) as progress:
            if ray:
                from heedful.jobs.on_ray import run_on_ray

                run_on_ray(job, task.open, progress)
            else:
                Worker(job, progress).run(translator)
    translator.warn(task.model)
    files = counted(len(job.plan.files), "files")
    typer.echo(f"{files} with {counted(job.plan.lines, 'lines')} are in {task.output}", err=True)


@contextmanager
def stopping(output: Path) -> Iterator[None]:
    """End a block after Ctrl-C or SIGTERM, when claims are given back, with a message on how to go on."""
    terminated = []

    def stop(*_: object) -> None:
        terminated.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt as error:
        message = f"interrupted; what is translated is kept in {output}, and the same command goes on"
        raise (Terminated if terminated else Interrupted)(message) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def check_options(text: list[str] | None, source: Path | None, output: Path | None) -> tuple[Path, Path]:
    """Check that input and output are folders, and return both."""
    if source is None or not source.is_dir():
        raise InputError("--shard-lines and --ray are for folders: give the folder as --input")
    if text:
        raise InputError("there are texts and --input; give one of them")
    if tables := sorted(path.name for path in source.iterdir() if path.is_file() and is_table(path)):
        raise InputError(
            f"--input {source}: {tables[0]} is a table, and of a folder lines are translated; give each table as "
            "--input FILE, and keep files of lines, whose names end otherwise, in the folder"
        )
    if output is None:
        raise InputError(f"--input {source}: is a folder, so --output must name a folder for the results")
    return source, output
