"""Systems train in processes of their own: one that is interrupted saves, and goes on to the same model."""

import json
import os
import signal
import time
from contextlib import suppress

import pytest
from commands import LONGEST, Command

from heedful.checkpoint import claim
from heedful.errors import InputError
from heedful.tools.compare.comparison import exit_message
from reversal import fingerprint

SETTINGS = ("b:train.seed=2", "train.validate_every=100", "train.save_every=100", "train.log_every=2")


@pytest.mark.slow
def test_an_interrupted_comparison_goes_on_to_the_same_models(compare, tmp_path):
    whole = compare("a=HERE/toy.toml", "b=HERE/toy.toml", settings=SETTINGS, updates=90)
    systems = [f"a={tmp_path / 'toy.toml'}", f"b={tmp_path / 'toy.toml'}", "--updates", "90"]
    changes = [word for setting in SETTINGS for word in ("--set", setting)]
    command = ["compare", *systems, *changes, "--out", str(tmp_path / "parts")]
    log = tmp_path / "parts/runs/a/log.jsonl"
    begun = Command(command, tmp_path / "interrupted.txt")
    while not (log.is_file() and log.read_text()) and begun.code is None:
        time.sleep(0.01)
    os.kill(begun.pid, signal.SIGTERM)
    assert begun.follow() == 143, begun.said()
    assert "the same command resumes the comparison" in begun.said()
    assert not (tmp_path / "parts/runs/a/result.json").exists()
    states = [system["state"] for system in json.loads((tmp_path / "parts/report.json").read_text())["systems"]]
    assert states == ["waiting", "waiting"]
    again = Command(command, tmp_path / "again.txt")
    assert again.follow() == 0, again.said()
    for name in "ab":
        assert fingerprint(tmp_path / "parts/runs" / name) == fingerprint(tmp_path / "out/runs" / name)
    report = json.loads((tmp_path / "parts/report.json").read_text())
    found = [system["test"]["scores"] for system in report["systems"]]
    assert found == [system.measured.test.scores for system in whole.report.systems]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_no_training_goes_on_without_the_comparison_that_began_it(compare, tmp_path, number):
    command = ["compare", f"a={tmp_path / 'toy.toml'}", "--updates", "100000", "--out", str(tmp_path / "out")]
    log = tmp_path / "out/runs/a/log.jsonl"
    begun = Command(command, tmp_path / "said.txt")
    while not (log.is_file() and log.read_text()) and begun.code is None:
        time.sleep(0.01)
    os.kill(begun.pid, number)
    begun.follow()
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        with suppress(InputError), claim(tmp_path / "out/runs/a"):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the training still runs")
    assert list((tmp_path / "out/runs/a/checkpoints").glob("step-*"))


@pytest.mark.parametrize(
    ("code", "words"), [(-9, "because memory ran out"), (-15, "with code -15"), (3, "with code 3")]
)
def test_the_end_of_a_process_is_explained_on_a_system_without_signals_too(code, words, monkeypatch):
    monkeypatch.delattr(signal, "SIGKILL")  # as on Windows
    assert words in exit_message(code)
