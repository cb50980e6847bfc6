"""The attacks of `make faults`, a few of most: none gets through."""

import importlib
import os
from pathlib import Path

import pytest
import record

FAULTS = Path(__file__).parents[1] / "faults"
LONG = {"hosts"}  # an attack takes a minute
SCRIPTS = sorted({path.stem for path in FAULTS.glob("*.py") if "def main(" in path.read_text(encoding="utf-8")} - LONG)
COUNTS: dict[str, int] = {
    "kills": 1,
    "ranks": 1,
    "schedules": 3,
    "shards": 1,
    "small_disk": 1,
}  # of attacks, where 2 do not show much or take too long


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_few_attacks_get_nowhere(script, monkeypatch, capsys):
    monkeypatch.setattr(record, "append", lambda *_: None)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FAULTS.parent / "src"), str(FAULTS.parent / "benchmarks")]))
    code = importlib.import_module(script).main(["--count", str(COUNTS.get(script, 2))])
    said = capsys.readouterr().out
    assert code == 0, said
    assert said.endswith(" passed, 0 failed\n")


def test_a_trial_that_raises_has_failed(monkeypatch, capsys):
    tally = importlib.import_module("tally")
    lines = []
    monkeypatch.setattr(record, "append", lambda _, line: lines.append(line))
    found = tally.Tally("kills.py", tally.options("", 7, ["--seed", "3"]))
    with found.trial("holds"):
        found.faults["kills"] += 2
    with found.trial("breaks"):
        raise AssertionError("other weights")
    assert found.conclude() == 1
    said = capsys.readouterr().out
    assert "FAILED: breaks" in said
    assert "other weights" in said
    assert said.endswith("2 kills\n1 passed, 1 failed\n")
    assert lines[0]["passed"] == lines[0]["failed"] == 1
    assert (lines[0]["count"], lines[0]["seed"]) == (7, 3)
