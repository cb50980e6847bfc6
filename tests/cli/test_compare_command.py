"""`heedful compare`: options become systems and a budget, and the end is told."""

from pathlib import Path

import pytest
from invocation import invoke

from heedful.errors import InputError
from heedful.tools.compare import comparison
from heedful.tools.compare.setup import Budget, System


@pytest.fixture
def asked(monkeypatch):
    """What the comparison is asked for; it ends with the exit code in `end`."""
    found = {"end": 0}

    def note(self):
        found.update(systems=[entry.system for entry in self.entries], budget=self.budget, data=self.data, out=self.out)
        return comparison.Outcome(None, found["end"])

    monkeypatch.setattr(comparison.ComparisonRun, "run", note)
    return found


def test_arguments_are_systems_and_options_a_budget(asked, tmp_path):
    budget = ("--updates", 7, "--minutes", 0.5, "--parameters", 1000)
    settings = ("--set", "train.seed=2", "--set", "b:model.d_model=64")
    shown = invoke("compare", "a.toml", "b=a.toml", *settings, *budget, "--data", tmp_path, "--out", "made")
    assert asked["systems"] == [
        System("a", Path("a.toml"), ("train.seed=2",)),
        System("b", Path("a.toml"), ("train.seed=2", "model.d_model=64")),
    ]
    assert (asked["budget"], asked["data"], asked["out"]) == (Budget(7, 0.5, 1000), tmp_path, Path("made"))
    assert shown.exit_code == 0
    assert shown.stdout == "made/report.html: open it in a browser; report.md and report.json are next to it\n"


@pytest.mark.parametrize(("end", "told"), [(1, False), (130, True), (143, True)])
def test_the_exit_code_tells_of_failures_and_interruptions(asked, end, told):
    asked["end"] = end
    shown = invoke("compare", "a.toml", "--out", "made")
    assert shown.exit_code == end
    assert ("the same command resumes the comparison" in shown.stderr) == told


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InputError, match="is not empty and is not a heedful run"):
        invoke("compare", "a.toml", "--out", tmp_path)
