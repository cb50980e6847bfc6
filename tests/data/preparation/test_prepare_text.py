"""Running text and passages on disk: made once, again when something changed, and never of nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from heedful.config.schema import CorpusConfig, DataConfig, Recipe, TokenizerConfig
from heedful.data.preparation.text import prepare_passages, prepare_running_text
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import one_tokenizer, train_tokenizer

PREPARE = {"language_model": prepare_running_text, "masked_lm": prepare_passages}
TEXT = "One cat sat. Two cats sat!\nNo dog sat there. It ran.\n\nThree cats ran.\n"


@pytest.fixture(params=PREPARE)
def recipe(request, tmp_path) -> Recipe:
    (tmp_path / "train.txt").write_text(TEXT)
    (tmp_path / "valid.txt").write_text(TEXT[::2])
    data = DataConfig(
        root=str(tmp_path),
        train=(CorpusConfig(source="train.txt"),),
        valid=CorpusConfig(source="valid.txt"),
        documents="line",
    )
    return Recipe(task=request.param, data=data, tokenizer=TokenizerConfig(kind="byte", mask=True))


def prepared(recipe: Recipe, folder: Path):
    told: list[str] = []
    return PREPARE[recipe.task](recipe, folder / "data", told.append), told


def test_every_document_is_kept_with_all_its_tokens(recipe, tmp_path):
    found, told = prepared(recipe, tmp_path)
    documents = [line for line in TEXT.splitlines() if line]
    spelled = found.tokenizers.source.decode(found.train[0].ids.tolist())
    assert spelled.replace(" ", "") == "".join(documents).replace(" ", "")
    assert any(line.startswith("train: 3 documents") for line in told)
    if recipe.task == "language_model":
        assert found.train[0].bytes == len("".join(documents))
        assert (found.train[0].ids == 3).sum() == 3
    else:
        assert (len(found.train[0]), len(found.train[0].sentences) - 1) == (3, 5)


def test_what_was_prepared_is_used_again_until_something_changes(recipe, tmp_path):
    first, told = prepared(recipe, tmp_path)
    assert not any("prepared earlier" in line for line in told)
    longer = replace(recipe, data=replace(recipe.data, max_length=97, cross_documents=False))
    for same in (recipe, longer):
        again, told = prepared(same, tmp_path)
        assert "prepared earlier" in told[0]
        assert (again.digest, again.report.to_dict()) == (first.digest, first.report.to_dict())
    (tmp_path / "train.txt").write_text(TEXT + "Four!\n")
    changed, told = prepared(recipe, tmp_path)
    assert not any("prepared earlier" in line for line in told)
    assert changed.digest != first.digest
    assert len(changed.train[0].ids) > len(first.train[0].ids)


def test_damage_is_mended_and_a_strange_folder_is_left_alone(recipe, tmp_path):
    first, _ = prepared(recipe, tmp_path)
    ids = tmp_path / "data" / "train" / "ids.bin"
    whole = ids.read_bytes()
    ids.write_bytes(whole[:-2])
    again, told = prepared(recipe, tmp_path)
    assert "preparing the data again" in told[0]
    assert (again.digest, ids.read_bytes()) == (first.digest, whole)
    (tmp_path / "data" / "report.json").write_text("mine")
    again, told = prepared(recipe, tmp_path)
    assert "preparing the data again (report.json does not match its checksum)" in told[0]
    assert (again.digest, ids.read_bytes()) == (first.digest, whole)
    (tmp_path / "data" / "report.json").write_text("mine")
    (tmp_path / "data" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="not a folder with prepared data"):
        prepared(recipe, tmp_path)


def test_what_cannot_be_one_text_is_refused(recipe, tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    cases = (
        ((), r"has no training text; add a \[\[data\.train\]\]"),
        ((CorpusConfig(source="train.txt", weight=2.0),), "train.txt: weight = 2.0; running text is read once"),
        ((CorpusConfig(source="blank.txt"),), "blank.txt: contains no texts"),
        ((CorpusConfig(source="lost.txt"),), "lost.txt"),
    )
    for train, message in cases:
        with pytest.raises(InputError, match=message):
            prepared(replace(recipe, data=replace(recipe.data, train=train)), tmp_path)
        assert not (tmp_path / "data").exists()


def test_a_tokenizer_of_two_languages_is_not_one(recipe, tmp_path):
    tokenizers = [train_tokenizer(["a b"], TokenizerConfig(kind=kind, vocab_size=307)) for kind in ("byte", "word")]
    TokenizerPair(*tokenizers).save(tmp_path / "pair")
    TokenizerPair(tokenizers[0], tokenizers[0]).save(tmp_path / "one")
    with pytest.raises(InputError, match="contains a tokenizer for each of two languages"):
        one_tokenizer(replace(recipe, tokenizer=TokenizerConfig(path=str(tmp_path / "pair"))), [], print)
    found = one_tokenizer(replace(recipe, tokenizer=TokenizerConfig(path=str(tmp_path / "one"))), [], print)
    assert found.source.digest == tokenizers[0].digest
