"""The shell loop of the documentation brings a run to its end that is killed again and again."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import heedful
from heedful.config.load import recipe_to_dict, to_toml
from heedful.training import loop
from interrupted import train
from reversal import fingerprint, recipe, write_pairs

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-goes-wrong.md"
SOURCE = str(Path(heedful.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])}


def supervise(command: str) -> subprocess.Popen[str]:
    """Start the loop of the page, with another command and without its pauses."""
    [found] = re.findall(r"```bash\n(until .+?done)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shell = found.replace("heedful train recipes/multi30k-en-de --data DATA --out RUN", command).replace(
        "sleep 10", ":"
    )
    assert "heedful train" in shell
    return subprocess.Popen(["sh", "-c", shell], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


def training(folder: Path) -> str:
    """The command that trains the recipe of a folder, by this Python."""
    return shlex.join(
        [sys.executable, "-c", "from heedful.cli import main; main() # heedful train", "train", str(folder)]
    )


def child_of(shell: int) -> int | None:
    children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(children[0]) if children else None


@pytest.mark.slow
def test_a_run_that_is_killed_three_times_ends_as_if_nothing_had_happened(tmp_path):
    write_pairs(tmp_path, "train", 101, seed=1)
    write_pairs(tmp_path, "valid", 11, seed=2)
    settings = recipe(tmp_path, train={"max_updates": 151, "save_every": 11, "validate_every": 53})
    (tmp_path / "config.toml").write_text(to_toml(recipe_to_dict(settings)))
    assert train(settings, tmp_path / "whole") == loop.Outcome(151, 0)
    shell = supervise(f"{training(tmp_path)} --out {shlex.quote(str(tmp_path / 'parts'))}")
    checkpoints, killed = tmp_path / "parts" / "checkpoints", 0
    while killed < 3 and shell.poll() is None:
        before = set(checkpoints.glob("step-*"))
        while shell.poll() is None and set(checkpoints.glob("step-*")) <= before:
            time.sleep(0.01)
        if (running := child_of(shell.pid)) is not None:
            os.kill(running, signal.SIGKILL)
            killed += 1
    _, said = shell.communicate(timeout=120)
    assert shell.returncode == 0, said
    assert killed == 3
    assert said.count("resuming after update") == 3
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


@pytest.mark.slow
def test_wrong_input_is_not_tried_again(tmp_path):
    shell = supervise(training(tmp_path / "nothing"))
    _, said = shell.communicate(timeout=60)
    assert said.count("heedful: ") == 1
