"""Whoever writes a wrong key is told the right one."""

import pytest

from heedful.config.keys import hint_of, hints_of_keys, settings_around, table_of
from heedful.config.schema import CorpusConfig
from heedful.config.setting import Fixed, setting_in
from heedful.config.unknown_keys import nearest, unknown_key_message, unknown_keys


def test_all_keys_reach_into_tables_and_lists_of_tables() -> None:
    keys = set(hints_of_keys())
    assert {
        "name",
        "model",
        "model.heads",
        "data.filters.max_ratio",
        "data.train.0.weight",
        "data.valid.source",
    } <= keys
    assert "data.train.weight" not in keys


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("train.lr", ["optimizer.lr"]),
        ("lr", ["optimizer.lr"]),
        ("model.n_heads", ["model.heads"]),
        ("modle", ["model"]),
        ("train.dropout", ["tokenizer.dropout", "model.dropout", "train.lora.dropout"]),
        ("model.vocab_size", ["tokenizer.vocab_size"]),
        ("optimizer.learning_rate", ["optimizer.lr"]),
        ("training.batch_size", ["train.batch_tokens"]),
        ("decode.beams", ["decode.beam"]),
        ("data.train.4.sorce", ["data.train.4.source"]),
        ("data.valid.tagret", ["data.valid.target"]),
        ("train.validate_bleu", ["train.validate_decoding"]),
        ("colour", []),
    ],
)
def test_the_nearest_key_is_the_one_that_was_meant(wrong: str, right: list[str]) -> None:
    assert nearest(wrong) == right


def test_every_name_of_another_toolkit_leads_to_a_key_that_exists() -> None:
    settings = [setting_in(hint) for hint in hints_of_keys().values()]
    names = [name for setting in settings for name in (*setting.aliases, *setting.former)]
    assert len(names) == len(set(names)) > 100
    assert not set(names) & {key.rpartition(".")[2] for key in hints_of_keys()}
    assert nearest("train.src_lang") == ["data.source_language"]


def test_a_setting_is_found_at_its_key_and_around_it() -> None:
    assert hint_of("data.train.3.weight") == hint_of("data.train.0.weight") == CorpusConfig.__annotations__["weight"]
    assert table_of(hint_of("data.train.3")) is CorpusConfig
    assert hint_of("optimizer.betas.1") == hint_of("optimizer.betas")
    assert hint_of("colour") is None
    assert next(settings_around("data.root")).resume == "free"
    assert isinstance([setting.resume for setting in settings_around("data.filters.duplicates")][-1], Fixed)


def test_a_key_like_no_other_is_reported_with_the_keys_of_its_table() -> None:
    names = "source, target, source_field, pair_field, target_field, part, weight"
    assert unknown_key_message("data.train.3.abcxyz").endswith(f"; [data.train.3] can contain {names}")
    assert unknown_key_message("colour").startswith("unknown key colour; a recipe can contain name, task, data, ")


def test_unknown_keys_are_found_at_every_depth() -> None:
    values = {"x": 1, "model": {"y": {"z": 1}, "heads": 3}, "data": {"train": [{}, {"w": 1}], "filters": {"v": 1}}}
    found = [("x", 1), ("model.y", {"z": 1}), ("data.train.1.w", 1), ("data.filters.v", 1)]
    assert list(unknown_keys(values)) == found
