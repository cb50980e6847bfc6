"""`heedful config`: what is shown is a recipe, what is wrong is named."""

import json
import re
from pathlib import Path

import pytest
from invocation import invoke

from heedful.cli.config import recipe_or_preset
from heedful.config.load import load_preset, load_recipe
from heedful.config.presets import PRESETS
from heedful.errors import InputError

RECIPE = """\
preset = "tiny"
[[data.train]]
source = "a.en"
target = "a.de"
[data.valid]
source = "b.en"
target = "b.de"
"""


def run(*arguments: object) -> str:
    return invoke("config", *arguments).output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(RECIPE)
    for name in ("a.en", "a.de", "b.en", "b.de"):
        (tmp_path / name).write_text("x\n")
    return tmp_path


def test_what_is_shown_is_the_same_recipe(folder: Path, tmp_path: Path) -> None:
    shown = tmp_path / "shown.toml"
    shown.write_text(run("show", folder, "--set", "model.heads=2", "--set", "model.kv_heads=1"))
    assert load_recipe(shown) == load_recipe(folder, ["model.heads=2", "model.kv_heads=1"])


def test_show_takes_the_folder_of_the_data(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert f'root = "{tmp_path / "other"}"' in run("show", folder, "--data", tmp_path / "other")


def test_a_preset_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "d_model = 1024\n" in run("show", "vaswani-big")
    Path("tiny").mkdir()
    Path("tiny/config.toml").write_text("[model]\nheads = 2\n")
    assert load_preset("tiny").model.heads == 4
    assert "heads = 2\n" in run("show", "tiny")


def test_a_good_recipe_is_called_good(folder: Path) -> None:
    assert run("check", folder).startswith(f"{folder}: no errors; found 4 text files\n")


def test_files_that_are_missing_are_named(folder: Path) -> None:
    (folder / "a.de").unlink()
    (folder / "b.en").unlink()
    with pytest.raises(
        InputError,
        match=r'^2 problems .*\n.*"a\.de": no such file in \S+; correct the name, or give --data FOLDER\n'
        r'.*"b\.en": no such file in \S+; ',
    ):
        run("check", folder)


def test_the_test_set_is_checked_too(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r'data\.test\.target = "bb\.de": no such files .*did you mean "b\.en" or "b\.de"'
    ):
        run("check", folder, "--set", 'data.test={source = "bb.en", target = "bb.de"}')


def test_what_training_would_refuse_is_not_good(folder: Path) -> None:
    with pytest.raises(InputError, match=r'^train\.device = "cuda:7" cannot be used'):
        run("check", folder, "--set", "train.device=cuda:7")
    with pytest.raises(InputError, match="is not empty and is not a heedful run"):
        run("check", folder, "--out", folder)
    assert "no errors" in run("check", folder, "--out", folder / "run")
    assert not (folder / "run").exists()


def test_a_folder_of_texts_is_good(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    for name in ("one.txt", "two.md"):
        (tmp_path / "books" / name).write_text("To be, or not to be.\n")
    recipe = tmp_path / "gpt.toml"
    recipe.write_text('task = "language_model"\ndata = {train = [{source = "books"}]}\nmodel = {family = "decoder"}\n')
    good, rate = run("check", recipe).splitlines()
    assert good == f"{recipe}: no errors; found 2 text files"
    assert rate.startswith("learning rate: cosine schedule from 0.0005 to 0 ")


def test_a_recipe_without_text_is_not_good(folder: Path) -> None:
    (folder / "config.toml").write_text("")
    with pytest.raises(InputError, match=r"has no training text; add a \[\[data\.train\]\]"):
        run("check", folder)


def test_a_wrong_override_is_not_good(folder: Path) -> None:
    with pytest.raises(InputError, match=r'^--set train\.lr=1: unknown key train\.lr; did you mean "optimizer\.lr"\?'):
        run("check", folder, "--set", "train.lr=1")


def test_the_schema_is_json() -> None:
    assert json.loads(run("schema"))["properties"]["model"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("base", "or a preset, such as bert-base, vit-base or clip-base"),
        ("gpt3", "or a preset, such as gpt2"),
        ("runs/x.toml", "or a preset (`heedful config presets` lists them)"),
    ],
)
def test_a_name_that_is_neither_recipe_nor_preset_is_told_with_what_is_near(name: str, hint: str) -> None:
    with pytest.raises(InputError, match=rf"{re.escape(name)}: no such recipe; .*{re.escape(hint)}"):
        recipe_or_preset(name, [])


def test_every_preset_is_listed() -> None:
    lines = run("presets").splitlines()
    assert {line.split()[0] for line in lines[1:] if line.split() and line[0] != " "} >= set(PRESETS)
    assert next(line for line in lines if "C-N2 " in line).split()[1:] == [
        "encoder_layers",
        "2,",
        "decoder_layers",
        "2",
        "36",
        "6.11",
        "23.7",
    ]
