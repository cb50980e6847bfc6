"""Names, sources and settings of systems, as they stand on the command line."""

from pathlib import Path

import pytest

from heedful.errors import InputError
from heedful.tools.compare.setup import System, parse_systems


def test_a_system_is_named_by_its_file_its_folder_or_the_user():
    systems = parse_systems(["a/small.toml", "b/wide/config.toml", "recipes/deep", "mine=x=y.toml"], [])
    assert [(system.name, str(system.source)) for system in systems] == [
        ("small", "a/small.toml"),
        ("wide", "b/wide/config.toml"),
        ("deep", "recipes/deep"),
        ("mine", "x=y.toml"),
    ]


def test_settings_are_for_all_systems_or_for_one_and_keep_their_order():
    small, wide = parse_systems(
        ["small=x.toml", "wide=x.toml"], ["train.seed=2", "wide:model.d_model=64", 'data.root="a:b"']
    )
    assert small == System("small", Path("x.toml"), ("train.seed=2", 'data.root="a:b"'))
    assert wide.overrides == ("train.seed=2", "model.d_model=64", 'data.root="a:b"')


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (["a/x.toml", "b/x.toml"], [], "two systems are named x; rename one of them, as in other-name=b/x.toml"),
        (["x.toml"], ["wide:model.d_model=64"], "no system is named wide; the systems are x"),
        (["-.toml"], [], "give this system a name of letters and digits, as in my-name="),
    ],
)
def test_what_names_no_system_is_refused(arguments, settings, words):
    with pytest.raises(InputError, match=words):
        parse_systems(arguments, settings)


def test_a_file_whose_name_has_an_equals_sign_is_no_named_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lr=1.toml").touch()
    with pytest.raises(InputError, match="give this system a name"):
        parse_systems(["lr=1.toml"], [])
    assert parse_systems(["one=lr=1.toml"], []) == [System("one", Path("lr=1.toml"))]


def test_a_trained_model_keeps_its_settings(compared):
    folder, _ = compared
    run = System("old", folder / "out/runs/wide")
    assert run.is_model
    assert run.recipe(None).model.d_model == 32
    assert run.recipe(Path("elsewhere")).data.root == str(Path("elsewhere").absolute())
    assert parse_systems([f"old={folder / 'out/runs/wide'}"], ["train.seed=2"]) == [run]
    with pytest.raises(InputError, match="is already trained; only a recipe can be changed"):
        System("old", folder / "out/runs/wide", ("train.seed=2",)).recipe(None)
