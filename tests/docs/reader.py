"""A reader who types what a page shows, block by block, in a folder with a little text under the names of the page."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hasty
import pytest
from pages import ROOT, Code

from heedful.config.defaults import over_presets
from heedful.config.schema import ModelConfig
from heedful.config.unknown_keys import unknown_keys
from heedful.config.validate import OPTIONS, architecture_in

ENVIRONMENT = os.environ | {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYTHONPATH": str(ROOT / "src"),
    "MPLBACKEND": "agg",
    "COLUMNS": "120",
}
PATIENCE = 600  # seconds for one block, on a busy machine too
SKIPPED = re.compile(r"\s*(?:make|pip install|git clone|sh benchmarks/peers/environments\.sh)\b")  # set things up


@contextmanager
def hasty_tools(folder: Path) -> Iterator[Path]:
    """A folder with the commands of `hasty.py` for readers in a hurry, which work while this context lasts."""
    tools, address = folder / "bin", str(folder / "socket")
    tools.mkdir(parents=True)
    for name in ("heedful", hasty.SESSION):
        script = tools / name
        script.write_text(hasty.ASK.format(python=sys.executable, address=address))
        script.chmod(0o755)
    command = [sys.executable, hasty.__file__, address]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stdout.readline() == hasty.READY
        try:
            yield tools
        finally:
            server.kill()


class Reader:
    """Runs the code of a page in one folder: shell and recipes there, Python in one session."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder = folder
        self.tools = tools
        self.environment = ENVIRONMENT | {"PATH": os.pathsep.join([str(tools), ENVIRONMENT["PATH"]])}
        self.python: subprocess.Popen[str] | None = None

    def follow(self, code: Code) -> None:
        """Do what a block shows.

        Raises:
            Failed: it does not work; the message holds the page, the line, the command and what it said.
        """
        if code.title:
            (self.folder / code.title).write_text(code.text, encoding="utf-8")
        elif code.unrun is None:
            {"toml": self.save, "python": self.say}.get(code.language, self.type)(code)

    def type(self, code: Code) -> None:
        """Run shell commands; the first that fails ends the block."""
        lines = [line if typed(code, line) else "" for line in code.text.split("\n")]
        lines = [line.removeprefix("$ ") for line in lines]
        page, before = code.place.rpartition(":")[0], code.line - 1
        tell = f"""trap 'printf "\\n{page}:%d: %s\\n" $((LINENO + {before})) "$BASH_COMMAND" >&2' ERR"""
        script = "\n".join([f"set -eo pipefail; {tell}; {lines[0]}", *lines[1:]])
        done = self.run("bash", "-c", script)
        if done.returncode:
            pytest.fail(f"{code.place}: this fails\n{code.text}\n{done.stdout}", pytrace=False)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command in the reader's folder, and all that it printed."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def say(self, code: Code) -> None:
        """Run Python after all Python of the page before it."""
        if self.python is None:
            self.python = subprocess.Popen(
                [self.tools / hasty.SESSION],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        assert self.python.stdin
        assert self.python.stdout
        padded = "\n" * (code.line - 1) + code.text  # so that a traceback names the lines of the page
        self.python.stdin.write(json.dumps([str(code.page), padded]) + "\n")
        self.python.stdin.flush()
        said = []
        for line in self.python.stdout:
            if line == hasty.END:
                return
            said.append(line)
        pytest.fail(f"{code.place}: this fails\n{code.text}\n{''.join(said)}", pytrace=False)

    def save(self, code: Code) -> None:
        """Write a recipe into a file of its name; of a part of a recipe, which has none, look at the keys."""
        recipe = tomllib.loads(code.text)
        if "name" in recipe:
            (self.folder / f"{recipe['name']}.toml").write_text(code.text, encoding="utf-8")
        architecture = architecture_in(over_presets(recipe, code.place))
        own = ":" in architecture  # whose keys of [model] are its own
        values = {key: value for key, value in recipe.items() if key != "preset"}
        found = unknown_keys(values, OPTIONS.get(architecture, ModelConfig))
        unknown = [name for name, _ in found if not (own and name[:6] == "model.")]
        if unknown:
            pytest.fail(f"{code.place}: recipes have no {', '.join(unknown)}", pytrace=False)

    def leave(self) -> None:
        """End the Python session; further code begins another one."""
        if self.python:
            self.python.communicate()
        self.python = None


def typed(code: Code, line: str) -> bool:
    """Whether a reader of these tests types a line: not what sets things up, and not what a command prints."""
    return not SKIPPED.match(line) and (code.language != "console" or line.startswith("$ "))
