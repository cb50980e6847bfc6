"""The names that documentation may use: what the sources define, the command line, the recipes and their data."""

import ast
import builtins
import importlib
import re
import tomllib
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
import typer
from pages import ROOT
from typer.core import TyperCommand, TyperGroup

from heedful.cli import app
from heedful.config.load import recipe_schema
from heedful.registry import METRICS

SOURCES = [path for folder in ("src", "benchmarks", "faults", "docs") for path in (ROOT / folder).rglob("*.py")]
TESTS = list((ROOT / "tests").rglob("*.py"))
FOREIGN = [builtins, typing, torch, torch.nn, torch.nn.functional, transformers]
Command = TyperCommand | TyperGroup


@cache
def command_line() -> Command:
    """The command `heedful` with all below it."""
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    return found


def command_at(words: list[str]) -> Command | str:
    """The command that these words reach, arguments behind it ignored; else the word that is no command."""
    found: Any = command_line()
    for word in words:
        if not isinstance(found, TyperGroup):
            break
        if word not in found.commands:
            return word
        found = found.commands[word]
    return found


def commands(name: str, command: Any) -> Iterator[tuple[str, Command]]:
    """A command and every command below it."""
    yield name, command
    for child, below in getattr(command, "commands", {}).items():
        yield from commands(child, below)


def options(command: Command) -> set[str]:
    """What can follow a command with two dashes."""
    return {"--help"} | {option for param in command.params for option in [*param.opts, *param.secondary_opts]}


@cache
def all_commands() -> dict[str, Command]:
    """Every command by its last word."""
    return dict(commands("heedful", command_line()))


@cache
def all_options() -> frozenset[str]:
    """The options of all commands, and of the scripts in benchmarks/ and faults/."""
    scripts = {text for text in strings() if text.startswith("--")}
    found = [command for _, command in commands("heedful", command_line())]
    return frozenset(scripts.union(*map(options, found)))


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of recipes."""
    return recipe_schema()


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """A part of the schema, with references followed: that of an optional table, or of [model] for any architecture."""
    names = [option["$ref"].rpartition("/")[2] for option in [node, *node.get("anyOf", [])] if "$ref" in option]
    if not names:
        return node
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        for key, value in schema()["$defs"][name]["properties"].items():
            found.setdefault(key, {"anyOf": []})["anyOf"] += [value, *value.get("anyOf", [])]
    return {"properties": found}


def key(name: str) -> dict[str, Any] | None:
    """The schema of a key of recipes such as "model.heads"; None if there is none."""
    node = schema()
    for part in name.split("."):
        if part not in node.get("properties", {}):
            return None
        node = resolved(node["properties"][part])
    return node


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


@cache
def strings() -> frozenset[str]:
    """Every string in the sources that is no sentence; of parts of names, such as ".attn", the name."""
    nodes = (node for path in SOURCES for node in ast.walk(tree(path)))
    found = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(text.strip(".") for text in found if isinstance(text, str) and " " not in text)


def defined(tree: ast.AST) -> Iterator[str]:
    """Every name that a syntax tree defines: classes, functions, parameters, variables, fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


@cache
def recipes() -> frozenset[str]:
    """What stands between quotes in the recipes, such as the files that they read, and each part of these paths."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "recipes").glob("*/config.toml")]
    found = {quoted for text in texts for quoted in re.findall(r'"([^"\n]+)"', text)}
    parts = {part for text in found for part in Path(text).parts}
    return frozenset(found | parts | {part.split(".")[0] for part in parts})


@cache
def names() -> frozenset[str]:
    """What the sources and the page define, and the words that they know: tasks, presets, taps, commands, keys."""
    python = {name for path in (*SOURCES, *TESTS) for name in defined(tree(path))}
    exported = r"export (?:const|let|function|class|type|interface) (\w+)"
    page = {name for path in (ROOT / "web/src").rglob("*.ts") for name in re.findall(exported, path.read_text())}
    modules = {name for path in SOURCES for name in (path.stem, path.parent.name)}
    keys = {name for node in [schema(), *schema()["$defs"].values()] for name in node["properties"]}
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    marked = {marker.partition(":")[0] for marker in markers}
    metrics = {name.rpartition(".")[2] for name in METRICS}
    return frozenset(python | page | modules | keys | marked | metrics | set(all_commands()) | strings() | recipes())


@cache
def foreign_names() -> frozenset[str]:
    """What Python, torch and transformers define."""
    return frozenset(name for module in FOREIGN for name in dir(module))


def is_importable(parts: list[str]) -> bool:
    """Whether a dotted name is a module, or something in one."""
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def is_known(parts: list[str]) -> bool:
    """Whether a dotted name can be imported, or its last part is defined somewhere."""
    last = parts[-1]
    return last in names() or last in foreign_names() or is_importable(["heedful", *parts]) or is_importable(parts)
