"""Pairs are also learned as people type them: without the final punctuation, in capitals, in lower case."""

from dataclasses import fields, replace

import pytest

from heedful.config.load import recipe_from_dict
from heedful.config.rules import remarks
from heedful.config.schema import CorpusConfig, DataConfig, Recipe, TokenizerConfig, VariantConfig
from heedful.data.preparation.pairs import prepare_pairs
from heedful.data.preparation.prepared_data import data_digest
from heedful.data.preparation.variants import CHANGES, variants
from heedful.data.readers.corpus import SentencePair

PAIR = SentencePair(7, "Where is Tom's house?", "Wo ist Toms Haus?")


def texts(pair: SentencePair, **shares: float) -> list[tuple[str, str]]:
    return [(one.source, one.target) for one in variants(pair, VariantConfig(**shares))]


def test_every_setting_has_a_change():
    assert list(CHANGES) == [field.name for field in fields(VariantConfig)]


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("unpunctuated", "Where is Tom's house", "Wo ist Toms Haus"),
        ("upper_case", "WHERE IS TOM'S HOUSE?", "WO IST TOMS HAUS?"),
        ("lower_case", "where is tom's house?", "Wo ist Toms Haus?"),
    ],
)
def test_a_pair_is_written_in_another_way(name, source, target):
    assert texts(PAIR, **{name: 1.0}) == [(source, target)]
    assert texts(PAIR, **{name: 0.0}) == []
    assert next(variants(PAIR, VariantConfig(**{name: 1.0}))).line == PAIR.line


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Wait...", "Warte …", [("Wait", "Warte")]),
        ("Really?!", "Wirklich?!", [("Really", "Wirklich")]),
        ("你好。", "Hello.", [("你好", "Hello")]),
        ("no", "nein.", []),  # the source is as it was
        ("?", "Was?", []),  # nothing is left of it
        ("a.b", "a.b", []),
    ],
)
def test_only_the_punctuation_at_the_end_is_left_out(source, target, expected):
    assert texts(SentencePair(1, source, target), unpunctuated=1.0) == expected


def test_a_share_of_the_pairs_is_chosen_whatever_their_order_and_for_each_variant_others():
    pairs = [SentencePair(line, f"This is line {line}.", f"Das ist Zeile {line}.") for line in range(4000)]
    settings = VariantConfig(unpunctuated=0.25, upper_case=0.25)
    plain, capitals = (
        {pair.line for pair in pairs if list(variants(pair, replace(settings, **{other: 0.0})))}
        for other in ("upper_case", "unpunctuated")
    )
    assert len(plain) == pytest.approx(1000, abs=100)
    assert len(capitals) == pytest.approx(1000, abs=100)
    assert len(plain & capitals) == pytest.approx(250, abs=60)
    moved = [
        replaced.line
        for replaced in (pair._replace(line=-pair.line) for pair in pairs[::-1])
        if list(variants(replaced, replace(settings, upper_case=0.0)))
    ]
    assert {-line for line in moved} == plain


@pytest.fixture
def recipe(tmp_path):
    """A recipe with 40 training pairs and 5 for validation."""
    for part, count in (("train", 40), ("valid", 5)):
        for language in ("en", "de"):
            lines = [f"{language} {part} {number} {'a' * number}.\n" for number in range(count)]
            (tmp_path / f"{part}.{language}").write_text("".join(lines), encoding="utf-8")
    corpora = {part: CorpusConfig(source=f"{part}.en", target=f"{part}.de") for part in ("train", "valid")}
    data = DataConfig(root=str(tmp_path), train=(corpora["train"],), valid=corpora["valid"])
    return Recipe(data=data, tokenizer=TokenizerConfig(vocab_size=300))


def test_variants_follow_their_pairs_in_training_and_not_in_validation(recipe, tmp_path):
    reports: list[str] = []
    data = replace(recipe.data, variants=VariantConfig(unpunctuated=1.0))
    prepared = prepare_pairs(replace(recipe, data=data), tmp_path / "data", reports.append)
    [store] = prepared.train
    decoded = [prepared.tokenizers.source.decode(store.source(index)) for index in range(len(store))]
    assert decoded[:4] == ["en train 0 .", "en train 0", "en train 1 a.", "en train 1 a"]
    assert len(store) == 80
    assert prepared.valid is not None
    assert len(prepared.valid) == 5
    assert "train.en: 80 pairs (40 of them variants), 0 dropped" in "".join(reports)


def test_a_variant_that_is_another_pair_is_learned_once_and_one_that_is_too_long_is_no_drop(recipe, tmp_path):
    for language in ("en", "de"):
        path = tmp_path / f"train.{language}"
        path.write_text(path.read_text() + "same!\nsame.\nsame\n" + "long " * 300 + ".\n", encoding="utf-8")
    data = replace(recipe.data, variants=VariantConfig(unpunctuated=1.0))
    prepared = prepare_pairs(replace(recipe, data=data), tmp_path / "data", lambda _: None)
    [store] = prepared.train
    assert len(store) == 80 + 3  # "same!", "same" as its variant, "same."
    assert prepared.report.counts == {"duplicate": 1, "too many tokens": 1}


def test_data_without_variants_has_the_digest_of_versions_that_had_none(recipe):
    digest = data_digest(recipe)
    shares = [VariantConfig(**{name: share}) for name in CHANGES for share in (0.5, 1.0)]
    changed = {data_digest(replace(recipe, data=replace(recipe.data, variants=each))) for each in shares}
    assert len(changed | {digest}) == 7
    assert data_digest(replace(recipe, data=replace(recipe.data, variants=VariantConfig()))) == digest


def test_variants_of_a_task_that_reads_no_pairs_are_reported():
    values = {"task": "classification", "model": {"family": "encoder"}, "data": {"variants": {"upper_case": 0.1}}}
    assert any("data.variants" in each for each in map(str, remarks(recipe_from_dict(values, "here"))))
