"""Recipes: what stands above what, and what a user reads who has made a mistake."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.defaults import merge
from heedful.config.keys import hints_of_keys
from heedful.config.load import (
    current_keys,
    load_preset,
    load_recipe,
    make_recipe,
    parse_override,
    recipe_from_dict,
    recipe_schema,
    recipe_to_dict,
    to_toml,
)
from heedful.config.presets import PRESETS
from heedful.config.schema import CorpusConfig, Recipe
from heedful.config.setting import setting_in
from heedful.errors import InputError

GOOD = """\
name = "small"
preset = "tiny"

[data]
root = "text"
[[data.train]]
source = "a.en"
target = "a.de"
weight = 2

[model]
heads = 2

[optimizer]
betas = [0.8, 0.9]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(GOOD)
    return path


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        load_recipe(path, overrides)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_typed_and_completed(file: Path) -> None:
    recipe = load_recipe(file)
    assert recipe.data.train == (CorpusConfig(source="a.en", target="a.de", weight=2.0),)
    assert isinstance(recipe.data.train[0].weight, float)
    assert recipe.optimizer.betas == (0.8, 0.9)
    assert (recipe.decode.max_extra, recipe.decode.extra) == (None, 50)


def test_overrides_stand_over_the_file_and_the_file_over_its_preset(file: Path) -> None:
    assert load_recipe(file).model.d_model == 128
    assert load_recipe(file).model.heads == 2
    assert load_recipe(file, ["model.heads=8"]).model.heads == 8
    assert load_recipe(file, ["model.heads=8", "model.heads=16"]).model.heads == 16


def test_later_presets_stand_over_earlier_ones(file: Path) -> None:
    recipe = load_recipe(file, ['preset=["tiny", "vaswani-D-dropout0.2"]'])
    assert (recipe.model.d_model, recipe.model.dropout, recipe.model.heads) == (512, 0.2, 2)


def test_a_folder_stands_for_its_config(file: Path) -> None:
    assert load_recipe(file.parent) == load_recipe(str(file))


def test_a_relative_root_starts_at_the_recipe_and_data_root_wins(file: Path, tmp_path: Path) -> None:
    assert load_recipe(file).data.root == str(tmp_path / "text")
    assert load_recipe(file, ["data.root=../other"]).data.root == str(tmp_path.parent / "other")
    assert load_recipe(file, data_root=tmp_path / "given").data.root == str(tmp_path / "given")
    assert load_recipe(file, [f"data.root={tmp_path}"]).data.root == str(tmp_path)


def test_every_path_starts_at_the_root(file: Path, tmp_path: Path) -> None:
    vectors = ["model.source_vectors=a.vec", "model.target_vectors=a.vec"]
    recipe = load_recipe(file, ["tokenizer.path=pieces", *vectors])
    assert recipe.tokenizer.path == str(tmp_path / "text/pieces")
    assert recipe.model.source_vectors == recipe.model.target_vectors == str(tmp_path / "text/a.vec")
    assert load_recipe(file, [f"tokenizer.path={tmp_path}"]).tokenizer.path == str(tmp_path)


@pytest.mark.parametrize("recipe", [None, [("task", "translation")], 3])
def test_what_is_not_a_recipe_is_named(recipe: Any) -> None:
    with pytest.raises(InputError, match=f"a {type(recipe).__name__} is not a recipe; give a dictionary"):
        make_recipe(recipe)


def test_a_preset_is_a_recipe_without_data() -> None:
    recipe = load_preset("tiny", ["model.heads=2"])
    assert (recipe.model.d_model, recipe.model.heads, recipe.data.train) == (128, 2, ())
    with pytest.raises(InputError, match=r'^preset "tinny": unknown preset "tinny"; did you mean "tiny", '):
        load_preset("tinny")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("optimizer.lr=3e-4", "optimizer.lr", 3e-4),
        ("train.seed = 7", "train.seed", 7),
        ("train.compile=true", "train.compile", True),
        ("model.norm=pre", "model.norm", "pre"),
        ('model.norm="pre"', "model.norm", "pre"),
        ("optimizer.betas=[0.9, 0.95]", "optimizer.betas", [0.9, 0.95]),
        ("data.root=/a b/c=d", "data.root", "/a b/c=d"),
        ("model.kv_heads=null", "model.kv_heads", None),
        ("name=1\nx = 2", "name", "1\nx = 2"),
        ("name=", "name", ""),
    ],
)
def test_overrides_are_toml_or_else_text(text: str, key: str, value: object) -> None:
    assert parse_override(text) == (key, value)


def test_overrides_reach_into_lists(file: Path) -> None:
    recipe = load_recipe(file, ["data.train.0.source=b.en", "data.train.1.source=c.tsv", "data.train.1.weight=3"])
    assert recipe.data.train == (
        CorpusConfig(source="b.en", target="a.de", weight=2.0),
        CorpusConfig(source="c.tsv", weight=3.0),
    )
    assert load_recipe(file, ["optimizer.betas.1=0.7"]).optimizer.betas == (0.8, 0.7)


def test_null_takes_a_value_back(file: Path) -> None:
    assert load_recipe(file, ["model.kv_heads=1", "model.kv_heads=null"]).model.kv_heads is None


def test_an_override_that_does_not_fit_is_named_with_its_remedy(file: Path) -> None:
    assert "--set model.d_model=65: model.d_model = 65 is not divisible by" in refusal(file, "model.d_model=65")
    assert 'but is "rope"; did you mean "rotary"?' in refusal(file, "model.positions=rope")
    assert 'but is "AdamW"; did you mean "adamw"?' in refusal(file, "optimizer.name=AdamW")
    assert refusal(file, "lora.rank=4").startswith("--set lora.rank=4: unknown table [lora]")
    assert refusal(file, "train.update_freq=2").endswith('did you mean "train.accumulate"?')


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.lr=3e-4"], '--set train.lr=3e-4: unknown key train.lr; did you mean "optimizer.lr"?'),
        (["optimizer.lr"], "--set optimizer.lr: write key=value, such as --set optimizer.lr=3e-4"),
        (["=3"], "--set =3: write key=value, such as --set optimizer.lr=3e-4"),
        (
            ["train.update_freq=2"],
            '--set train.update_freq=2: unknown key train.update_freq; did you mean "train.accumulate"?',
        ),
        (["train.seed=x"], '--set train.seed=x: train.seed must be a whole number, but is "x"'),
        (
            ["model.norm=middle"],
            '--set model.norm=middle: model.norm must be "post", "pre" or "none", but is "middle"',
        ),
        (
            ["data.train.5.source=x"],
            "--set data.train.5.source=x: 5 is not an index of a list of length 1; use 1 to append to it",
        ),
        (
            ["data.train.source=x"],
            "--set data.train.source=x: add the position in the list, counted from 0, as in data.train.0.source",
        ),
        (["name=1979-05-27"], '--set name=1979-05-27: name must be text in quotes, but is [["1979-05-27"]]'),
        (["data.labels=1979-05-27"], "--set data.labels=1979-05-27: data.labels.0 must be text in quotes"),
        (['data.train=["b.tsv"]'], '--set data.train=["b.tsv"]: data.train.0 must be a table, but is "b.tsv"'),
        (["train.device=gpu"], '--set train.device=gpu: train.device = "gpu" is not a device; use "auto", "cpu",'),
    ],
)
def test_a_wrong_override_is_named(file: Path, overrides: list[str], message: str) -> None:
    assert refusal(file, *overrides).startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n_heads = 3", 'line 13: unknown key model.n_heads; did you mean "model.heads"?'),
        ("colour = 3", "line 13: unknown key model.colour; [model] can contain architecture, family, d_model,"),
        ('d_model = "64"', 'line 13: model.d_model must be a whole number, but is "64"; write 64 without quotes'),
        ("d_model = 64.0", "line 13: model.d_model must be a whole number, but is 64.0; write 64"),
        ("d_model = true", "line 13: model.d_model must be a whole number, but is true"),
        ('dropout = "0.1"', 'line 13: model.dropout must be a number, but is "0.1"; write 0.1 without quotes'),
        ('attention_bias = "no"', 'must be true or false, but is "no"; write false'),
        ('attention_bias = "false"', 'must be true or false, but is "false"; write false without quotes'),
        ('norm = "prre"', 'line 13: model.norm must be "post", "pre" or "none", but is "prre"; did you mean "pre"?'),
        ("[image]\nchannels = 2", "line 14: image.channels must be 1 or 3, but is 2"),
        ("dropout = [1, 2]", "line 13: model.dropout must be a number, but is a list"),
        ("d_model = 35\npositions = 'none'", "line 12: model.d_model = 35 is not divisible by model.heads = 2;"),
        ("[decode]\nbeam = 0", "line 14: decode.beam must be at least 1, but is 0"),
        ("[data.valid]\ntarget = 'b'", "line 13: data.valid.source is missing"),
        ("[tarin]\nseed = 1", 'line 13: unknown table [tarin]; did you mean "[train]"?'),
        ("[foo]\nseed = 1", "line 13: unknown table [foo]; a recipe can contain name, task, data, "),
        ("[model]\nnorm = 'pre'", "line 13: [model] is defined twice; merge the two tables"),
        ("[image]\nsize = 32", "image.size must be a list of height and width, such as [32, 32], but is 32"),
        ("[tokenizer]\nvocab_size = 99999999", "vocab_size must be at most 10,000,000, but is 99,999,999"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_remedy(file: Path, line: str, message: str) -> None:
    file.write_text(GOOD.replace("heads = 2\n", f"heads = 2\n{line}\n"))
    assert message in refusal(file)
    assert refusal(file).startswith(f"{file}, line 1")


def test_one_bracket_for_a_list_of_tables_is_understood(file: Path) -> None:
    file.write_text(GOOD.replace("[[data.train]]", "[data.train]"))
    assert refusal(file) == (
        f"{file}, line 6: data.train must be a list, but is a table; write [[data.train]] with two brackets"
    )


def test_a_list_of_the_wrong_length_is_named(file: Path) -> None:
    assert "optimizer.betas takes 2 values, not 3" in refusal(file, "optimizer.betas=[0.1, 0.2, 0.3]")
    assert "optimizer.betas.1 is missing" in refusal(file, "optimizer.betas=[0.1]")


def test_all_problems_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[train]\nsede = 1\nlog_every = "often"\n[decode]\nbeem = 2\n')
    assert refusal(file, "train.compile=maybe").splitlines() == [
        "4 problems in the recipe",
        f'  {file}, line 2: unknown key train.sede; did you mean "train.seed"?',
        f'  {file}, line 3: train.log_every must be a whole number, but is "often"',
        f'  {file}, line 5: unknown key decode.beem; did you mean "decode.beam"?',
        '  --set train.compile=maybe: train.compile must be true or false, but is "maybe"',
    ]


def test_a_flood_of_problems_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("[model]\n" + "".join(f"x{i} = 1\n" for i in range(11)))
    assert len(refusal(file).splitlines()) == 1 + 8 + 1
    assert refusal(file).endswith("and 3 more")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("vaswani-bass", "did you mean "), ("", "`heedful config presets`"), (3, "`heedful config pre")],
)
def test_an_unknown_preset_is_named(file: Path, name: object, remedy: str) -> None:
    file.write_text(f"preset = {json.dumps(name)}")
    assert refusal(file).startswith(f"{file}, line 1: unknown preset {json.dumps(name)}; {remedy}")


def test_keys_of_the_transformer_in_a_recipe_of_another_architecture_are_to_be_removed(file: Path) -> None:
    assert "unknown key model.heads: it is a key of the Transformer, " in refusal(file, "model.architecture=recurrent")
    counted = refusal(file, "model.architecture=recurrent", "model.decoder_layers=3")
    assert "model.decoder_layers: it is a key of the Transformer, not of the recipe's architecture; did you" in counted
    assert 'did you mean "model.layers"' in refusal(file, "model.architecture=recurrent", "decoder_layers=3")


def test_the_recipes_in_a_folder_without_one_are_named(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.toml").touch()
    names = [str(tmp_path / f"{name}.toml") for name in "abcd"]
    assert refusal(tmp_path).endswith(f"; give {names[0]}, {names[1]} or {names[2]}")
    Path(names[3]).touch()
    assert refusal(tmp_path).endswith(f"; give one of its recipes, such as {names[0]}, {names[1]} or {names[2]}")


def test_what_is_no_recipe_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith(f"{tmp_path}: this folder contains no config.toml")
    assert refusal(tmp_path / "x").startswith(f"{tmp_path / 'x'}: no such recipe")
    (tmp_path / "x").write_bytes(b"\0\xff")
    assert (
        refusal(tmp_path / "x") == f"{tmp_path / 'x'}: is a binary file, not a recipe; give a TOML file or a folder "
        "with a config.toml"
    )
    (tmp_path / "x.de").write_text("Ein Satz.\n")
    assert "x.de: this is a text file or a table, not a recipe; `heedful init " in refusal(tmp_path / "x.de")
    assert 'preset = "tiny"' in refusal(Path("tiny"))


@given(st.data())
@settings(max_examples=100)
def test_a_damaged_recipe_loads_or_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    lines = data.draw(st.permutations(GOOD.splitlines()))
    start = data.draw(st.integers(0, len(GOOD)))
    text = "\n".join(lines)
    text = text[:start] + data.draw(st.text(max_size=5)) + text[start + data.draw(st.integers(0, 9)) :]
    file = tmp_path_factory.getbasetemp() / "damaged.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(InputError):
        assert isinstance(load_recipe(file), Recipe)


@pytest.mark.parametrize("values", [{}, *PRESETS.values()], ids=["defaults", *PRESETS])
def test_a_recipe_survives_json_and_toml(tmp_path: Path, values: dict) -> None:
    data = {"root": str(tmp_path), "train": [{"source": "ä\t.tsv"}]}
    recipe = recipe_from_dict(merge(values, {"data": data}), "here")
    assert recipe_from_dict(json.loads(json.dumps(recipe_to_dict(recipe))), "here") == recipe
    file = tmp_path / "written.toml"
    file.write_text(to_toml(recipe_to_dict(recipe)))
    assert load_recipe(file) == recipe


def test_strange_json_is_refused() -> None:
    for values in ({"name": "\ud800"}, {"model": []}, {"data": {"train": {}}}, {"model": None}):
        with pytest.raises(InputError, match="here"):
            recipe_from_dict(values, "here")


def test_the_schema_describes_every_table_and_forbids_the_rest() -> None:
    schema = recipe_schema()
    tables = [schema, *schema["$defs"].values()]
    assert all(table["additionalProperties"] is False for table in tables)
    assert all(value.get("description") for table in tables for value in table["properties"].values())
    beam = schema["$defs"]["DecodeConfig"]["properties"]["beam"]
    assert beam["description"] == "Beam size: hypotheses kept at each step; 1 is greedy search."
    assert "cell" not in schema["$defs"]["ModelConfig"]["properties"]
    assert "attention" in schema["$defs"]["RecurrentConfig"]["properties"]
    assert "tiny" in schema["properties"]["preset"]["anyOf"][0]["enum"]
    assert set(recipe_to_dict(Recipe())) | {"preset"} == set(schema["properties"])


def test_reading_the_schema_needs_no_pydantic_and_loading_no_torch() -> None:
    code = (
        "import sys, heedful.config.schema; assert 'pydantic' not in sys.modules;"
        "import heedful.config.load; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_recipe_with_old_names_means_the_same():
    values = recipe_to_dict(Recipe())
    old = dict(values["train"])
    old["validate_bleu"] = not old.pop("validate_decoding")
    recipe = recipe_from_dict(current_keys({**values, "train": old}), "here")
    assert recipe.train.validate_decoding is False
    assert current_keys(values) == values


def test_former_names_are_not_those_of_other_settings():
    former = [name for hint in hints_of_keys().values() for name in setting_in(hint).former]
    assert "validate_bleu" in former
    assert not {key.rpartition(".")[2] for key in hints_of_keys()} & set(former)


def test_what_is_not_a_table_is_left_for_the_checks():
    assert current_keys({"train": 3, "data": {"train": [{"source": "a"}]}, "x": {"y": 1}}) == {
        "train": 3,
        "data": {"train": [{"source": "a"}]},
        "x": {"y": 1},
    }
