"""Commands that compute nothing with a model start without torch, and those that count without its compiler."""

import shlex
import subprocess
import sys
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
WITHOUT_TORCH = [
    "--help",
    "--version",
    "train --help",
    "config presets",
    "config show recipe.toml",
    "config schema",
    "runs list .",
    "runs check run",
    "tokenizer train train.en --out tokenizer --vocab-size 300",
    "scenes en-de --out out --train 3 --valid 1 --test 1",
    "stories --out out --train 3 --valid 1 --test 1",
    "shapes --out out --train 3 --valid 1 --test 1",
]
WITHOUT_COMPILER = [
    "info",
    "info tiny",
    "info en-de",
    "config check recipe.toml",
    "init moods.tsv --out out",
    "init train.en train.de --out out",
    "init train.en --out out",
]
SHOWING_MODULES = r"""
import sys
from heedful.cli import main

try:
    main()
finally:
    print("\n", *sys.modules, file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [f"the {a} dog and the {b} cat" for a in ("red", "big", "old", "new") for b in "abcdefghijklmnopqrstuvw"]
    Path("train.en").write_text("".join(f"{text}\n" for text in texts))
    Path("train.de").write_text("".join(f"{text.upper()}\n" for text in texts))
    Path("moods.tsv").write_text("text\tlabel\n" + "".join(f"{t}\t{'ab'[i % 2]}\n" for i, t in enumerate(texts)))
    Path("recipe.toml").write_text(RECIPE)
    Path("run/checkpoints").mkdir(parents=True)
    Path("run/heedful.lock").touch()


def modules_of(command: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    words = [sys.executable, "-c", SHOWING_MODULES, *shlex.split(command)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:1000]
    return set(ended.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("command", WITHOUT_TORCH)
def test_a_command_that_needs_no_torch_does_not_wait_for_it(command):
    modules = modules_of(command)
    assert "heedful.cli" in modules
    assert "torch" not in modules


@pytest.mark.parametrize("command", WITHOUT_COMPILER)
def test_nothing_that_is_counted_or_checked_waits_for_the_compiler(command):
    assert not {"torch._dynamo", "torch.distributed.fsdp", "sympy", "matplotlib", "pandas"} & modules_of(command)
