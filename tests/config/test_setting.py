"""A field says its facts once; fields of a user's own dataclass may say nothing."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from heedful.config.keys import KEYS, hints_of_keys, is_per_machine, resume_rule, table_of
from heedful.config.model import ArchitectureConfig, Dropout
from heedful.config.schema import Recipe
from heedful.config.setting import Count, Fixed, Setting, bounds, descriptions, range_text, setting_in
from heedful.config.validate import OPTIONS


@dataclass(frozen=True, kw_only=True)
class OwnConfig(ArchitectureConfig):
    """Keys of an architecture of a user's own."""

    layers: int = 1
    """Layers of the encoder,
    and of the decoder."""

    bare: int = 1
    rate: Dropout = 0.1
    """Dropout of its own."""

    cache: Annotated[Count | None, Setting(resume="free", per_machine=True)] = None


def test_descriptions_are_the_docstrings_below_fields_of_the_class_and_its_bases() -> None:
    found = descriptions(OwnConfig)
    assert found["layers"] == "Layers of the encoder, and of the decoder."
    assert found["rate"] == "Dropout of its own."
    assert found["d_model"] == descriptions(ArchitectureConfig)["d_model"] == "Size of embeddings and hidden states."
    assert not {"bare", "cache"} & set(found)


def test_a_class_without_a_source_has_no_descriptions() -> None:
    namespace: dict = {"__name__": "typed_at_a_prompt"}
    exec("from dataclasses import dataclass\n@dataclass\nclass Own:\n    a: int = 1\n    'Text.'\n", namespace)
    assert descriptions(namespace["Own"]) == {}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_setting_has_a_description(options: type) -> None:
    for table in (Recipe, options, *filter(None, map(table_of, hints_of_keys(options).values()))):
        assert set(descriptions(table)) >= set(table.__dataclass_fields__)
        assert all(text[0].isupper() or text[0] == "`" for text in descriptions(table).values())
        assert all(text.endswith(".") for text in descriptions(table).values())


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, ""),
        (Count, "at least 1"),
        (Count | None, "at least 1"),
        (Annotated[Count | None, Setting()], "at least 1"),
        (Annotated[Annotated[Count, Setting(values={"one": "1"})] | None, Setting()], "at least 1"),
        (tuple[Count, ...], "at least 1"),
        (Dropout, "at least 0 and less than 1"),
    ],
)
def test_the_range_of_a_number_is_in_its_type(hint: object, text: str) -> None:
    assert range_text(bounds(hint)) == text


def test_a_setting_says_whether_it_may_change_and_else_its_table_does() -> None:
    assert resume_rule("train.log_every") == "free"
    assert resume_rule("generate.top_k") == "free"
    assert resume_rule("train.max_epochs") == "length"
    assert resume_rule("optimizer.lr") == resume_rule("image.flip") == "ask"
    assert isinstance(resume_rule("data.filters.max_tokens"), Fixed)
    assert resume_rule("data.test.source") == "free"
    assert resume_rule("tokenizer.dropout") == "ask"
    assert resume_rule("no.such.key") == "ask"


def test_a_setting_of_ones_own_architecture_may_say_whether_it_may_change() -> None:
    assert isinstance(resume_rule("model.layers", OwnConfig), Fixed)
    assert resume_rule("model.rate", OwnConfig) == "ask"
    assert resume_rule("model.cache", OwnConfig) == "free"
    assert is_per_machine("model.cache", OwnConfig)
    assert not is_per_machine("model.layers", OwnConfig)


def test_each_machine_has_its_own_place_and_device() -> None:
    keys = {key for key in hints_of_keys() if is_per_machine(key)}
    assert keys == {"data.root", "train.device", "train.threads", "train.workers"}


def test_a_key_is_written_as_its_value_is_read() -> None:
    assert f"{KEYS.train.seed}, {KEYS.data.filters.max_tokens}" == "train.seed, data.filters.max_tokens"
    assert setting_in(hints_of_keys()[str(KEYS.decode.beam)]).aliases == ("beam_size", "num_beams")
