"""heedful needs nothing that only Linux has, and what it writes does not depend on it."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import heedful
from every_task import RECIPES
from heedful.config.load import recipe_to_dict, to_toml
from interrupted import train
from reversal import fingerprint
from without_linux import GONE

ROOT = Path(__file__).parents[1]
SOURCE = Path(heedful.__file__).parent
NOT_IN_WINDOWS = {
    "os": {*GONE, "chown", "getloadavg", "geteuid", "getuid", "killpg", "nice", "readv", "setsid", "uname", "waitpid"},
    "signal": {"SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "pthread_kill", "setitimer"},
    "time": {"tzset"},
}
ONLY_UNIX = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "posix"}


def only_unix(file: Path) -> set[str]:
    """What only Unix or Linux has and a file uses."""
    used = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            used |= {name.name for name in node.names} & ONLY_UNIX
        elif isinstance(node, ast.ImportFrom):
            used |= {node.module} & ONLY_UNIX
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used |= {node.attr} & NOT_IN_WINDOWS.get(node.value.id, set())
        elif isinstance(node, ast.Constant) and str(node.value).startswith("/proc"):
            used |= {node.value}
    return used


def test_no_file_uses_what_only_unix_has():
    """But for the limits of an untrusted program, which has fewer of them where they cannot be imported."""
    used = {file.name: used for file in SOURCE.rglob("*.py") if (used := only_unix(file))}
    assert used == {"untrusted_program.py": {"resource"}}


def test_the_workflow_runs_tests_that_are_there_on_every_version_of_python_that_is_promised():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = [name.split(" :: ")[-1] for name in project["classifiers"] if "Python :: 3." in name]
    (versions,) = re.findall(r"python: (\[.*\])", workflow)
    assert json.loads(versions) == promised
    assert project["requires-python"] == f">={promised[0]}"
    paths = re.findall(r"tests/[\w/.]+", workflow)
    assert len(paths) > 9
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.slow  # every process imports torch anew
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("translation", ["translate", "--input", "texts", "--output", "answers", "--model", "run"]),
        ("image_classification", ["predict", "picture.png", "--model", "run"]),
    ],
)
def test_commands_and_workers_run_without_what_only_linux_has(name, answer, tmp_path):
    (tmp_path / "data").mkdir()
    recipe = RECIPES[name](tmp_path / "data")
    recipe = replace(
        recipe,
        data=replace(recipe.data, test=recipe.data.valid),
        train=replace(recipe.train, workers=2, threads=1, max_updates=5),
    )
    train(replace(recipe, train=replace(recipe.train, workers=0)), tmp_path / "here")
    (tmp_path / "recipe.toml").write_text(to_toml(recipe_to_dict(recipe)), encoding="utf-8")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("w1 w2\n", encoding="utf-8")
    picture = next(iter((tmp_path / "data").rglob("*.png")), None)
    if picture:
        (tmp_path / "picture.png").write_bytes(picture.read_bytes())
    commands = [["train", "recipe.toml", "--out", "run"], ["evaluate", "run"], answer]
    (tmp_path / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    program = Path(__file__).with_name("without_linux.py")
    done = subprocess.run(
        [sys.executable, str(program), "commands.json"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SOURCE.parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "here")
    if name == "translation":
        assert (tmp_path / "answers" / "a.txt").read_text(encoding="utf-8").count("\n") == 1
