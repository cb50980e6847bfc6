"""Whoever writes a wrong key is told the right one."""

import pytest

from heedful.config.keys import all_keys, nearest, siblings, unknown_keys


def test_all_keys_reach_into_tables_and_lists_of_tables() -> None:
    keys = set(all_keys())
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
        ("train.dropout", ["tokenizer.dropout", "model.dropout"]),
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
    from heedful.config.keys import _OTHER_NAMES

    assert set(_OTHER_NAMES.values()) <= set(all_keys())
    assert not set(_OTHER_NAMES) & {key.rpartition(".")[2] for key in all_keys()}


def test_siblings_are_the_names_of_one_table() -> None:
    assert siblings("data.train.3.colour") == [
        "source",
        "target",
        "source_field",
        "pair_field",
        "target_field",
        "part",
        "weight",
    ]
    assert siblings("colour")[:3] == ["name", "task", "data"]


def test_unknown_keys_are_found_at_every_depth() -> None:
    values = {"x": 1, "model": {"y": {"z": 1}, "heads": 3}, "data": {"train": [{}, {"w": 1}], "filters": {"v": 1}}}
    assert list(unknown_keys(values)) == ["x", "model.y", "data.train.1.w", "data.filters.v"]
