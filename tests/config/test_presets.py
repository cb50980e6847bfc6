"""Presets are what the papers say."""

from dataclasses import replace

import pytest

from heedful.config.defaults import merge
from heedful.config.load import load_preset, make_recipe, recipe_from_dict
from heedful.config.presets import FILES, PRESETS, TABLE_3, read_tables, resolved
from heedful.config.schema import ModelConfig, Recipe
from heedful.tasks.model_size import count_model


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_recipe(name: str) -> None:
    recipe_from_dict(PRESETS[name], name)


def test_base_is_the_model_of_the_paper() -> None:
    recipe = recipe_from_dict(PRESETS["vaswani-base"], "base")
    model, optimizer, train, decode = recipe.model, recipe.optimizer, recipe.train, recipe.decode
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.d_ff, model.heads) == (6, 6, 512, 2048, 8)
    assert (model.norm, model.positions, model.tie, model.attention_bias) == ("post", "sinusoidal", "all", False)
    assert (model.dropout, model.attention_dropout, model.activation_dropout) == (0.1, 0.0, 0.0)
    assert (optimizer.name, optimizer.betas, optimizer.eps) == ("adam", (0.9, 0.98), 1e-9)
    assert (optimizer.schedule, optimizer.lr, optimizer.warmup, optimizer.clip_norm) == ("noam", 1.0, 4000, 0.0)
    assert (train.max_updates, train.label_smoothing, train.average_last) == (100_000, 0.1, 5)
    assert train.batch_tokens * train.accumulate == 32_768
    assert (decode.beam, decode.penalty, decode.alpha, decode.extra) == (4, "gnmt", 0.6, 50)
    assert (recipe.tokenizer.kind, recipe.tokenizer.vocab_size, recipe.tokenizer.joint) == ("bpe", 37_000, True)


def test_big_is_larger_and_longer() -> None:
    recipe = recipe_from_dict(PRESETS["vaswani-big"], "big")
    model, train = recipe.model, recipe.train
    assert (model.encoder_layers, model.d_model, model.d_ff, model.heads, model.dropout) == (6, 1024, 4096, 16, 0.3)
    assert (train.max_updates, train.average_last, train.label_smoothing) == (300_000, 20, 0.1)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("A-h1", {"heads": 1}),
        ("A-h32", {"heads": 32}),
        ("B-dk16", {"d_k": 16, "d_v": 64}),
        ("B-dk32", {"d_k": 32, "d_v": 64}),
        ("C-N2", {"encoder_layers": 2, "decoder_layers": 2}),
        ("C-d256", {"d_model": 256}),
        ("C-ff4096", {"d_ff": 4096}),
        ("D-dropout0.2", {"dropout": 0.2}),
        ("E-learned", {"positions": "learned"}),
    ],
)
def test_a_row_of_table_3_differs_from_base_in_one_thing(name: str, changes: dict) -> None:
    row, base = (recipe_from_dict(PRESETS[f"vaswani-{row}"], row) for row in (name, "base"))
    assert row.train == base.train
    assert {key: value for key, value in vars(row.model).items() if value != getattr(base.model, key)} == changes


def test_label_smoothing_is_what_the_name_says() -> None:
    for value in ("0.0", "0.2"):
        recipe = recipe_from_dict(PRESETS[f"vaswani-D-smoothing{value}"], value)
        assert recipe.train.label_smoothing == float(value)


def test_table_3_is_whole() -> None:
    groups = [row.name[0] for row in TABLE_3]
    assert {group: groups.count(group) for group in "ABCDE"} == {"A": 4, "B": 2, "C": 7, "D": 4, "E": 1}
    assert all(4 < row.perplexity < 7 and 23 < row.bleu < 27 for row in TABLE_3)


def test_tiny_is_a_model_and_no_more() -> None:
    model = ModelConfig(d_model=128, d_ff=256, heads=4, encoder_layers=4, decoder_layers=4)
    assert recipe_from_dict(PRESETS["tiny"], "tiny") == replace(Recipe(), model=model)


def test_merging_replaces_all_but_tables_and_leaves_its_arguments_alone() -> None:
    below = {"a": {"b": 2, "c": {"d": 3}}, "e": [5, 7]}
    above = {"a": {"c": {"d": 11}}, "e": [13]}
    assert merge(below, above) == {"a": {"b": 2, "c": {"d": 11}}, "e": [13]}
    assert below == {"a": {"b": 2, "c": {"d": 3}}, "e": [5, 7]}


@pytest.mark.parametrize(
    ("name", "width", "heads", "parameters", "printed"),
    [
        ("vit-tiny", 192, 3, 5_717_416, "5.7"),
        ("vit-small", 384, 6, 22_050_664, "22.1"),
        ("vit-base", 768, 12, 86_567_656, "86.6"),
    ],
)
def test_vision_transformers_have_the_size_and_the_parameters_of_the_papers(
    name: str, width: int, heads: int, parameters: int, printed: str
) -> None:
    classes = tuple(map(str, range(1000)))
    recipe = load_preset(name)
    recipe = replace(recipe, data=replace(recipe.data, labels=classes))
    model = recipe.model
    assert (model.d_model, model.d_ff, model.heads, model.encoder_layers) == (width, 4 * width, heads, 12)
    assert (model.norm, model.activation, model.norm_eps, model.dropout) == ("pre", "gelu", 1e-6, 0.1 * (width == 768))
    assert (recipe.image.size, recipe.image.patch, recipe.longest_input) == ((224, 224), 16, 197)
    assert count_model(recipe, 0, 0).total == parameters
    assert f"{parameters / 1e6:.1f}" == printed  # Touvron et al. (2021), table 1: 5, 22 and 86 millions
    pictures = recipe.train.batch_tokens * recipe.train.accumulate / recipe.longest_input
    assert pictures == (4096 if name == "vit-base" else 1024)
    assert recipe.train.max_updates == pytest.approx(300 * 1_281_167 / pictures, rel=1e-3)


@pytest.mark.parametrize("task", ["language_model", "masked_lm"])
def test_a_model_of_running_text_is_not_trained_as_the_translators_of_the_paper_are(task):
    recipe = make_recipe({"task": task})
    assert (recipe.train.label_smoothing, recipe.optimizer.schedule) == (0.0, "cosine")
    assert recipe.model.family == {"language_model": "decoder", "masked_lm": "encoder"}[task]
    assert make_recipe({"task": task, "optimizer": {"lr": 1e-3}}).optimizer.schedule == "cosine"
    paper = make_recipe({"task": task, "optimizer": {"schedule": "vaswani"}}).optimizer
    assert (paper.lr, paper.warmup) == (1.0, 4000)
    named = make_recipe({"task": task, "preset": "vaswani-base", "model": {"family": recipe.model.family}})
    assert (named.train.label_smoothing, named.optimizer.schedule) == (0.1, "noam")


def test_the_schedule_of_the_paper_has_a_former_name():
    assert make_recipe({"optimizer": {"schedule": "vaswani"}}) == make_recipe({"optimizer": {"schedule": "noam"}})


def test_a_preset_takes_another_one_of_its_file() -> None:
    tables = {
        "small": {"preset": "base", "model": {"heads": 2}, "printed": {"bleu": 1.0}},
        "base": {"task": "translation", "model": {"heads": 8, "d_ff": 7}},
        "tiny": {"preset": "small", "model": {"d_ff": 3}},
    }
    assert resolved("tiny", tables) == {"task": "translation", "model": {"heads": 2, "d_ff": 3}}
    assert resolved("small", tables)["model"] == {"heads": 2, "d_ff": 7}


def test_files_of_presets_hold_recipes_and_no_table_says_what_its_preset_says() -> None:
    for file in FILES:
        tables = read_tables(file)
        for name, table in tables.items():
            assert {*table} <= {*Recipe.__dataclass_fields__, "preset", "printed"}
            below = resolved(table["preset"], tables) if "preset" in table else {}
            same = [
                (key, inner)
                for key, values in table.items()
                if isinstance(values, dict) and key in below
                for inner, value in values.items()
                if below[key].get(inner) == value
            ]
            assert not same, name
