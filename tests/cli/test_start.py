"""Commands that compute nothing with a model start without torch, and those that count without its compiler."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from toy_model import TOY_MODEL

RECIPE = f"""
[data]
train = [{{source = "train.en", target = "train.de"}}]
[tokenizer]
kind = "character"
{TOY_MODEL}
"""
TASKS = {  # whose recipes are checked by their settings and files alone
    "classification": 'source = "moods.tsv", source_field = "text", target_field = "label"',
    "regression": 'source = "marks.tsv", source_field = "text", target_field = "mark"',
    "tagging": 'source = "tags.conll"',
    "ranking": 'source = "moods.tsv", source_field = "text", target_field = "label"',
    "language_model": 'source = "train.en"',
    "masked_lm": 'source = "train.en"',
    "text_to_text": 'source = "train.en", target = "train.de"',
}
WITHOUT_TORCH = [
    "--help",
    "--version",
    "train --help",
    "config presets",
    "config show recipe.toml",
    "config schema",
    "config check recipe.toml",
    "config check recipe.toml --out new",
    *(f"config check {task}.toml" for task in TASKS),
    "runs list .",
    "runs check run",
    "tokenizer train train.en --out tokenizer --vocab-size 300",
    "scenes en-de --out out --train 3 --valid 1 --test 1",
    "stories --out out --train 3 --valid 1 --test 1",
    "shapes --out out --train 3 --valid 1 --test 1",
    "vectors nearest cat --model words.txt",
]
WITHOUT_COMPILER = [
    "info",
    "info tiny",
    "info en-de",
    "init moods.tsv --out out",
    "init train.en train.de --out out",
    "init train.en --out out",
]
SHOWING_MODULES = r"""
import json, os, shlex, sys
from pathlib import Path
from heedful.cli import main

modules = {}
for command, folder in json.loads(sys.argv[1]).items():
    os.chdir(folder)
    sys.argv = ["heedful", *shlex.split(command)]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    modules[command] = [*sys.modules]
Path("modules.json").write_text(json.dumps(modules))
"""


def make_folder(folder: Path) -> None:
    """Make a folder with all files that a command names."""
    texts = [f"the {a} dog and the {b} cat" for a in ("red", "big", "old", "new") for b in "abcdefghijklmnopqrstuvw"]
    (folder / "run/checkpoints").mkdir(parents=True)
    (folder / "run/heedful.lock").touch()
    (folder / "train.en").write_text("".join(f"{text}\n" for text in texts))
    (folder / "train.de").write_text("".join(f"{text.upper()}\n" for text in texts))
    rows = "".join(f"{t}\t{'ab'[i % 2]}\n" for i, t in enumerate(texts))
    (folder / "moods.tsv").write_text(f"text\tlabel\n{rows}")
    (folder / "marks.tsv").write_text("text\tmark\n" + "".join(f"{t}\t{i}\n" for i, t in enumerate(texts)))
    (folder / "tags.conll").write_text("the\tO\ndog\tB-ANIMAL\n\n" * 20)
    (folder / "words.txt").write_text("cat 1 2\ndog 2 1\n")
    (folder / "recipe.toml").write_text(RECIPE)
    for task, corpus in TASKS.items():
        documents = 'documents = "line"' if task == "masked_lm" else ""
        family = {"language_model": "decoder", "text_to_text": "encoder_decoder"}
        model = f'[model]\nfamily = "{family.get(task, "encoder")}"\ntie = "none"\n'
        recipe = f'task = "{task}"\n[data]\n{documents}\ntrain = [{{{corpus}}}]\n[tokenizer]\nkind = "character"\n'
        (folder / f"{task}.toml").write_text(recipe + ("mask = true\n" if task == "masked_lm" else "") + model)


@pytest.fixture(scope="module")
def modules_after(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], dict[str, set[str]]]:
    """A function that runs commands one after the other; it returns all modules that are imported after each."""

    @cache
    def run(commands: tuple[str, ...]) -> dict[str, set[str]]:
        folders = {command: tmp_path_factory.mktemp("folder") for command in commands}
        for folder in folders.values():
            make_folder(folder)
        words = [sys.executable, "-c", SHOWING_MODULES, json.dumps(folders, default=str)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[-1000:]
        found = json.loads((folders[commands[-1]] / "modules.json").read_text())
        assert list(found) == list(commands)
        return {command: set(modules) for command, modules in found.items()}

    return lambda commands: run(tuple(commands))


@pytest.mark.parametrize("command", WITHOUT_TORCH)
def test_a_command_that_needs_no_torch_does_not_wait_for_it(command, modules_after):
    modules = modules_after(WITHOUT_TORCH)[command]
    assert "heedful.cli" in modules
    assert "torch" not in modules


@pytest.mark.parametrize("command", WITHOUT_COMPILER)
def test_nothing_that_is_counted_or_checked_waits_for_the_compiler(command, modules_after):
    modules = modules_after(WITHOUT_COMPILER)[command]
    assert not {"torch._dynamo", "torch.distributed.fsdp", "sympy", "matplotlib", "pandas"} & modules
