"""On a terminal of 30 columns help is whole and fits, tables lose no number, and messages no word."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from heedful.cli import app
from heedful.cli.hints import commands_of, options_of

COMMANDS = {" ".join(words): command for words, command in commands_of(get_command(app))}


def shown(*arguments: str, columns: int = 30) -> str:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


@pytest.mark.parametrize("columns", [1, 30, 59])
@pytest.mark.parametrize("words", ["", "tokenizer", "config", "vectors", "runs", *COMMANDS])
def test_help_is_whole_and_fits(words, columns):
    lines = shown(*words.split(), "--help", columns=columns).splitlines()
    assert [line for line in lines if len(line) > max(columns, 20) and " " in line.strip()] == []
    names = " ".join(lines).replace(",", " ").split()
    command = COMMANDS.get(words)
    assert set(options_of(command) if command else ["--help"]) <= set(names)
    text = f"{command.help} {' '.join(each.help or '' for each in command.params)}" if command else ""
    assert set(text.replace(",", " ").split()) <= set(names)


def test_a_group_without_a_command_shows_its_commands():
    told = shown("vectors").split()
    assert {"nearest", "analogy", "similarity", "plot", "export"} <= set(told)


def test_a_wide_terminal_has_tables_of_options():
    assert "╭─ Options " in shown("train", "--help", columns=100)


@pytest.mark.parametrize("arguments", ["info", "info tiny", "info vaswani-base", "config presets"])
def test_a_table_is_the_same_on_every_terminal(arguments):
    wide, narrow = (shown(*arguments.split(), columns=columns) for columns in (200, 30))
    assert narrow.split() == wide.split()
    assert "…" not in narrow


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'?"),
        ("train r --lr 3", "Did you mean --set optimizer.lr=VALUE?"),
    ],
)
def test_a_mistake_is_answered_in_whole_words(arguments, words):
    assert words in " ".join(shown(*arguments.split()).replace("│", " ").split())
