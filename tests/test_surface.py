"""What a user touches: the public names, the commands, the notebooks. Pages of the documentation: tests/docs/."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.testing import CliRunner

import heedful
from heedful.cli import app
from heedful.cli.commands import TABLE, Commands

ROOT = Path(__file__).parent.parent
Command = TyperCommand | TyperGroup

HEAVY = {"torch", "numpy", "tokenizers", "sacrebleu", "pydantic", "matplotlib", "transformers"}


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after running `code`."""
    tail = "; import sys; sys.stderr.write(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stderr.split()}


def commands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command below `command` with the words that reach it."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            assert isinstance(child, Command)
            yield from commands(child, (*path, name))


def command_line() -> Command:
    """The root of the command line, made afresh."""
    root = typer.main.get_command(app)
    assert isinstance(root, Command)
    return root


def test_the_public_names_are_these() -> None:
    assert sorted(heedful.__all__) == ["__version__", "export", "load", "look", "trace", "train"]
    assert all(getattr(heedful, name) for name in heedful.__all__)


def test_the_function_train_keeps_its_name_whatever_is_imported() -> None:
    code = "import heedful.training.loop; from heedful import train; from heedful.training.loop import train as run; "
    assert "torch" in modules_after(f"{code}assert heedful.train is train is not run and callable(train)")


def test_python_runs_the_package_as_the_command() -> None:
    run = subprocess.run([sys.executable, "-m", "heedful", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"heedful {heedful.__version__}\n"


def test_importing_heedful_imports_nothing_heavy() -> None:
    assert modules_after("import heedful") & (HEAVY | {"typer", "rich"}) == set()


def test_help_imports_nothing_heavy() -> None:
    assert modules_after("from heedful.cli import app; app(['--help'], standalone_mode=False)") & HEAVY == set()


@pytest.mark.parametrize(
    ("path", "command"), commands(command_line()), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_and_option_explains_itself(path: tuple[str, ...], command: Command) -> None:
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0
    assert command.help
    assert [option.name for option in command.params if isinstance(option, TyperOption) and not option.help] == []


@pytest.mark.parametrize(
    ("path", "command"), commands(command_line()), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_no_word_of_a_help_text_is_lost(path: tuple[str, ...], command: Command) -> None:
    """Rich takes a word in square brackets for markup, and leaves it out."""
    shown = CliRunner(env={"COLUMNS": "999"}).invoke(app, [*path, "--help"]).stdout
    helps = [command.help, *(option.help for option in command.params if isinstance(option, TyperOption))]
    assert [word for text in helps for word in (text or "").split() if word not in shown] == []


@pytest.mark.parametrize(
    ("path", "command"), commands(command_line()), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_a_help_text_stands_alone(path: tuple[str, ...], command: Command) -> None:
    """It begins with the thing or the action, and not with a pronoun for something that stands elsewhere."""
    helps = [command.help, *(option.help for option in command.params if isinstance(option, TyperOption))]
    riddle = r"(That|Those|What|Who|How|Where|Which|Such|The same|Of|Its|It)\b"
    assert [text for text in helps if re.match(riddle, text or "")] == []


def test_an_option_that_must_be_given_is_marked() -> None:
    for command in ("generate", "fill", "predict", "search", "encode"):
        shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [command, "--help"]).stdout
        assert re.search(r"\* +--model[^*]*\[required\]", shown), command


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"heedful {heedful.__version__}\n"


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda notebook: notebook.name)
def test_notebooks_run_and_hold_no_outputs(notebook: Path, tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert not [cell for cell in cells if cell["outputs"] or cell["execution_count"]]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_page_on_recipes_says_what_the_schema_says() -> None:
    page = runpy.run_path(str(ROOT / "docs/reference/recipe.py"))["page"]
    assert (ROOT / "docs/reference/recipe.md").read_text() == page(), "run: python docs/reference/recipe.py"


def test_the_list_of_commands_says_what_the_help_of_each_begins_with() -> None:
    first = {name: command.help.split("\n\n")[0].replace("\n", " ") for name, command in Commands(TABLE).items()}
    assert {name: entry.summary for name, entry in TABLE.items()} == first


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("heedful tra", ["train", "translate", "transcribe"]),
        ("heedful config sho", ["show"]),
        ("heedful train --strict --req", ["--requeue"]),
        ("heedful write --mo", ["--model"]),
    ],
)
def test_a_shell_completes_commands_and_their_options(words: str, completed: list[str]) -> None:
    line = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_HEEDFUL_COMPLETE": "complete_bash"}
    shown = CliRunner(env=line).invoke(app, prog_name="heedful").stdout
    assert sorted(shown.split()) == sorted(completed)
