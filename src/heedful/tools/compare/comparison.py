"""Run of a comparison: check the systems, train and measure them one by one, and write the report after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heedful.checkpoint import claim, find_model
from heedful.checkpoint.run_layout import CHECKPOINTS
from heedful.config.schema import Recipe
from heedful.data.preparation.prepared_data import text_digest
from heedful.errors import HeedfulError, InputError
from heedful.storage.complete_folder import MANIFEST
from heedful.tasks import find_task
from heedful.tools.compare.job import MEASUREMENT_VERSION, Job, Result, run_process, write_bytes, write_json
from heedful.tools.compare.report import html_page, markdown_page
from heedful.tools.compare.results import FAILED, WAITING, Report, SystemReport, gather, report_system
from heedful.tools.compare.setup import Budget, ComparisonSetup, System
from heedful.training.preflight import preflight

PAGE, TEXT, NUMBERS = "report.html", "report.md", "report.json"
KILLED = -9  # exit code of a process killed by SIGKILL, which Windows does not have


@dataclass
class Entry:
    """Entry of a comparison: a system, and its recipe, result or error so far."""

    system: System
    recipe: Recipe | None = None  # with the budget applied
    error: str | None = None
    result: Result = field(default_factory=Result)
    shares_data: bool = True  # False: a model trained on other data, or on data whose files are missing
    model: str | None = None  # SHA-256 of the manifest of a trained model; None for a recipe

    @property
    def loaded(self) -> Recipe:
        assert self.recipe
        return self.recipe

    @property
    def failure(self) -> str:
        prefix = f"{self.system.name}: "
        return f"{prefix}{str(self.error).removeprefix(prefix)}".replace("\n", "\n  ")


@dataclass(frozen=True)
class Outcome:
    """Outcome of a comparison: its report, and the exit code of the command."""

    report: Report
    exit_code: int

    @property
    def is_interrupted(self) -> bool:
        """True if a signal ended the comparison early."""
        return self.exit_code > HeedfulError.exit_code


class ComparisonRun:
    """Run of a comparison in the folder `out`; it resumes where an earlier run was interrupted.

    In `out`, data/ contains the prepared data, runs/NAME the run of each system, and results/NAME.json its numbers. The
    user's data files are read from the folder `data` or, if it is None, from the location in each recipe.
    """

    setup: ComparisonSetup  # set by `check`

    def __init__(
        self, systems: Sequence[System], budget: Budget, out: Path, data: Path | None, say: Callable[[str], None]
    ) -> None:
        self.entries = [Entry(system) for system in systems]
        self.budget = budget
        self.out = out
        self.data = data
        self.say = say
        self.prepared: Path | None = None  # the folder of prepared data; None if no system is trained here

    def run(self) -> Outcome:
        if (self.out / CHECKPOINTS).is_dir():
            raise InputError(f"--out {self.out}: contains a run, not a comparison; choose another folder")
        with claim(self.out):
            self.check()
            # Nothing is trained until all systems can be compared.
            if failures := [entry.failure for entry in self.entries if entry.error]:
                summary = (
                    f"{len(failures)} of {len(self.entries)} systems cannot be compared, so no system was trained; "
                    f"correct or remove {'it' if len(failures) == 1 else 'them'}"
                )
                raise InputError("\n  ".join([summary, *failures]))
            waiting = [entry for entry in self.entries if not self.restore(entry)]
            report = self.write()
            for entry in waiting:
                interrupted = self.advance(entry)
                report = self.write()
                if interrupted:
                    return Outcome(report, 128 + interrupted)
            return Outcome(report, HeedfulError.exit_code if any(entry.error for entry in self.entries) else 0)

    def check(self) -> None:
        """Check all systems, prepare their shared data, and record which systems cannot take part."""
        for entry in self.entries:
            self.attempt(entry, self.load)
        usable = [entry for entry in self.entries if not entry.error]
        if not usable:
            failures = [entry.failure for entry in self.entries]
            raise InputError("\n  ".join(["none of these systems can be compared", *failures]))
        first = next((entry for entry in usable if not entry.system.is_model), usable[0])
        recipes, is_trained = [entry.loaded for entry in usable], first.system.is_model
        self.setup = ComparisonSetup.of(first.system.name, first.loaded, recipes, is_trained=is_trained)
        for entry in usable:
            self.attempt(entry, self.join)
        # A system whose recipe cannot be loaded ends the comparison, so the data is not prepared.
        if not is_trained and len(usable) == len(self.entries):
            self.prepare(first.loaded)
        for entry in usable:
            if not entry.error and entry.system.is_model:
                self.attempt(entry, lambda entry: self.setup.check_labels(entry.loaded))

    def attempt(self, entry: Entry, step: Callable[[Entry], object]) -> None:
        """Perform a step for one system; if it fails, store the error in the entry of the system."""
        try:
            step(entry)
        except HeedfulError as error:
            entry.error = str(error)

    def load(self, entry: Entry) -> None:
        """Load the recipe of a system; if it is to be trained, apply the budget and check what training needs."""
        system = entry.system
        if system.is_model:
            recipe = system.recipe(self.data)
            find_task(recipe.task)  # rejects a custom task whose module is not imported
            entry.model = text_digest(find_model(system.source) / MANIFEST)
            entry.recipe = recipe
        else:
            recipe = replace(system, overrides=system.overrides + self.budget.overrides).recipe(self.data)
            entry.recipe = preflight(recipe, extra=[recipe.data.test] if recipe.data.test else [])

    def join(self, entry: Entry) -> None:
        recipe, shares_data = self.setup.join(entry.loaded, is_trained=entry.system.is_model)
        entry.recipe, entry.shares_data = recipe, shares_data

    def prepare(self, recipe: Recipe) -> None:
        """Prepare the data of all systems to be trained, and check their model sizes."""
        self.prepared = self.out / "data"
        task = find_task(recipe.task).prepare(recipe, self.prepared, self.say)
        self.setup = replace(self.setup, labels=task.recipe.data.labels)
        for entry in self.entries:
            if not entry.error and not entry.system.is_model:
                self.attempt(entry, lambda entry: self.budget.check_size(entry.loaded, task.tokenizers))

    def restore(self, entry: Entry) -> bool:
        """Read the result of a system from an earlier run; return True if the system is trained and measured."""
        job = self.job(entry)
        result = Result.read(job.result)
        if not result.is_done(job):
            return False
        entry.result = result
        self.say(f"{entry.system.name}: already trained and measured")
        return True

    def advance(self, entry: Entry) -> int:
        """Train and measure one system; return the number of the signal that interrupted it, or 0."""
        job = self.job(entry)
        path = self.out / "jobs" / f"{entry.system.name}.json"
        write_json(path, job.to_json())
        self.say(f"{entry.system.name}: {'training' if job.trains else 'measuring'} {entry.system.source}")
        code, interrupted = run_process(path)
        result = Result.read(job.result)
        if result.is_done(job):
            entry.result = result
        elif not interrupted:
            error = result.error if result.job == job.to_json() else None
            entry.error = error or exit_message(code)
            self.say(entry.failure)
        return interrupted or 0

    def job(self, entry: Entry) -> Job:
        name, trains = entry.system.name, not entry.system.is_model
        return Job(
            recipe=entry.loaded,
            folder=self.out / "runs" / name if trains else entry.system.source,
            data=self.prepared if entry.shares_data else None,
            trains=trains,
            result=self.out / "results" / f"{name}.json",
            inputs={
                "data": self.setup.data,
                "test": self.setup.test_digest,
                "model": entry.model,
                "method": MEASUREMENT_VERSION,
            },
        )

    def write(self) -> Report:
        report = gather([self.report_entry(entry) for entry in self.entries], self.setup.test_name, self.budget)
        write_json(self.out / NUMBERS, report.to_json())
        write_bytes(self.out / TEXT, markdown_page(report).encode())
        write_bytes(self.out / PAGE, html_page(report).encode())
        return report

    def report_entry(self, entry: Entry) -> SystemReport:
        name, source, measured = entry.system.name, str(entry.system.source), entry.result.measured
        if entry.error:
            return SystemReport(name, source, entry.recipe, FAILED, entry.error)
        if measured is None:
            return SystemReport(name, source, entry.recipe, WAITING)
        remarks = self.budget.remarks(entry.loaded, measured.updates, measured.seconds, measured.parameters)
        folder, shares_data = self.job(entry).folder, entry.shares_data
        return report_system(name, source, entry.loaded, measured, folder, remarks, shares_data=shares_data)


def exit_message(code: int) -> str:
    if code == KILLED:
        return "its process was killed, probably because memory ran out; try a smaller train.batch_tokens"
    return f"its process exited with code {code} and wrote no result"
