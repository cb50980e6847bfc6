"""Comparison of systems: checks them, trains and measures one after another, and writes the report after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from heedful.checkpoint import claim, find_model
from heedful.config.schema import Recipe
from heedful.data.preparation.prepared_data import text_digest
from heedful.errors import HeedfulError, InputError
from heedful.storage.manifest import MANIFEST
from heedful.tasks import find_task
from heedful.tools.compare.job import METHOD, Job, Result, run_process, write_bytes, write_json
from heedful.tools.compare.pages import html_page, markdown_page
from heedful.tools.compare.report import FAILED, WAITING, Report, SystemReport, gather, report_system
from heedful.tools.compare.setup import Budget, ComparisonSetup, System, trained_on
from heedful.training.preflight import preflight

PAGE, TEXT, NUMBERS = "report.html", "report.md", "report.json"
KILLED = -9  # exit code of a process that SIGKILL ended, a signal that Windows does not have

Say = Callable[[str], None]


@dataclass
class Entry:
    """Entry of a comparison: a system, and what is known of it so far."""

    system: System
    recipe: Recipe | None = None  # with its budget
    error: str | None = None
    result: Result = field(default_factory=Result)
    shares_data: bool = True  # False: a trained model of other training data, or of data that is not here
    model: str | None = None  # SHA-256 of a trained model

    @property
    def is_sound(self) -> bool:
        return self.error is None

    @property
    def loaded(self) -> Recipe:
        assert self.recipe
        return self.recipe


@dataclass(frozen=True)
class Outcome:
    """Outcome of a comparison: its report, and the exit code of the command."""

    report: Report
    exit_code: int

    @property
    def is_interrupted(self) -> bool:
        """True if a signal ended the comparison before its end."""
        return self.exit_code > HeedfulError.exit_code


class ComparisonRun:
    """Run of a comparison in the folder `out`, which resumes where an earlier one was interrupted.

    In the folder data/ has the prepared data, runs/NAME the run of each system, and results/NAME.json its numbers. The
    data files are in the folder `data`, or else where each recipe says.
    """

    setup: ComparisonSetup  # found by `check`

    def __init__(self, systems: Sequence[System], budget: Budget, out: Path, data: Path | None, say: Say) -> None:
        self.entries = [Entry(system) for system in systems]
        self.budget = budget
        self.out = out
        self.data = data
        self.say = say
        self.prepared: Path | None = None  # the folder of prepared data; None if no system is trained here

    def run(self) -> Outcome:
        with claim(self.out):
            self.check()
            # The systems that can be compared are not trained as long as others cannot.
            if failed := [entry for entry in self.entries if not entry.is_sound]:
                summary = (
                    f"{len(failed)} of {len(self.entries)} systems cannot be compared, and nothing is trained until "
                    "they are corrected or left out"
                )
                raise InputError("\n  ".join([summary, *map(failure, failed)]))
            waiting = [entry for entry in self.entries if entry.is_sound and not self.is_done(entry)]
            report = self.write()
            for entry in waiting:
                interrupted = self.advance(entry)
                report = self.write()
                if interrupted:
                    return Outcome(report, 128 + interrupted)
            is_sound = all(entry.is_sound for entry in self.entries)
            return Outcome(report, 0 if is_sound else HeedfulError.exit_code)

    def check(self) -> None:
        """Check all systems, prepare the data that they share, and note the systems that cannot take part."""
        for entry in self.entries:
            self.attempt(entry, self.load)
        sound = [entry for entry in self.entries if entry.is_sound and entry.recipe]
        if not sound:
            raise InputError("\n  ".join(["none of these systems can be compared", *map(failure, self.entries)]))
        first = next((entry for entry in sound if not entry.system.is_trained), sound[0])
        recipes, is_trained = [entry.loaded for entry in sound], first.system.is_trained
        self.setup = ComparisonSetup.of(first.system.name, first.loaded, recipes, is_trained=is_trained)
        for entry in sound:
            self.attempt(entry, self.agree)
        if not is_trained:
            self.prepare(first.loaded)
        for entry in sound:
            if entry.is_sound and entry.system.is_trained:
                self.attempt(entry, lambda entry: self.setup.check_labels(entry.loaded))

    def agree(self, entry: Entry) -> None:
        """Check that a system agrees to the setup of the comparison; a trained model may come from other data."""
        recipe, is_trained = entry.loaded, entry.system.is_trained
        self.setup.check(recipe)
        if is_trained:
            entry.shares_data = self.setup.data is not None and trained_on(recipe) == self.setup.data
        else:
            self.setup.check_data(recipe)
        entry.recipe = self.setup.applied(recipe, is_trained=is_trained)

    def prepare(self, recipe: Recipe) -> None:
        """Prepare the data of all systems that are to be trained, and check the sizes of their models."""
        self.prepared = self.out / "data"
        task = find_task(recipe.task).prepare(recipe, self.prepared, self.say)
        self.setup = replace(self.setup, labels=task.recipe.data.labels)
        for entry in self.entries:
            if entry.is_sound and not entry.system.is_trained:
                self.attempt(entry, lambda entry: self.budget.check_size(entry.loaded, task.tokenizers))

    def attempt(self, entry: Entry, step: Callable[[Entry], object]) -> None:
        """Perform a step for one system; an error is kept with the system."""
        try:
            step(entry)
        except HeedfulError as error:
            entry.error = str(error)

    def load(self, entry: Entry) -> None:
        """Load the recipe of a system, with the budget, and check it against the machine and its files."""
        system = entry.system
        if not system.is_trained:
            system = replace(system, overrides=system.overrides + self.budget.overrides)
        recipe = system.recipe(self.data)
        if system.is_trained:
            find_task(recipe.task)  # a class of a stranger's is not imported, and refused here
            entry.model = text_digest(find_model(system.source) / MANIFEST)
        tests = [recipe.data.test] if recipe.data.test else []
        entry.recipe = recipe if system.is_trained else preflight(recipe, further=tests)

    def is_done(self, entry: Entry) -> bool:
        """Read the result of a system, and return True if the system is trained and measured."""
        job = self.job(entry)
        result = Result.read(job.result)
        if not result.is_done(job):
            return False
        entry.result = result
        self.say(f"{entry.system.name}: trained and measured before")
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
            entry.error = error or ended(code)
            self.say(failure(entry))
        return interrupted or 0

    def job(self, entry: Entry) -> Job:
        name, trains = entry.system.name, not entry.system.is_trained
        return Job(
            recipe=entry.loaded,
            folder=self.out / "runs" / name if trains else entry.system.source,
            data=self.prepared if entry.shares_data else None,
            trains=trains,
            result=self.out / "results" / f"{name}.json",
            inputs={"data": self.setup.data, "test": self.setup.test_digest, "model": entry.model, "method": METHOD},
        )

    def write(self) -> Report:
        report = gather([self.reported(entry) for entry in self.entries], self.setup.test_name, self.budget)
        write_json(self.out / NUMBERS, report.to_json())
        write_bytes(self.out / TEXT, markdown_page(report).encode())
        write_bytes(self.out / PAGE, html_page(report).encode())
        return report

    def reported(self, entry: Entry) -> SystemReport:
        system, measured = entry.system, entry.result.measured
        if not entry.is_sound or not entry.recipe:
            return SystemReport(system.name, str(system.source), entry.recipe, FAILED, entry.error)
        if measured is None:
            return SystemReport(system.name, str(system.source), entry.recipe, WAITING)
        folder = self.job(entry).folder
        remarks = self.budget.remarks(entry.recipe, measured.updates, measured.seconds, measured.parameters)
        name, source = system.name, str(system.source)
        return report_system(name, source, entry.recipe, measured, folder, remarks, shares_data=entry.shares_data)


def failure(entry: Entry) -> str:
    return f"{entry.system.name}: {entry.error}"


def ended(code: int) -> str:
    if code == KILLED:
        return "its process was killed, which the system does when memory runs out; try a smaller train.batch_tokens"
    return f"its process ended with exit code {code} and left no result"
