"""Text that is held out and trained on is found, whatever reads it, and nothing else is."""

import pytest

from heedful.config.schema import CorpusConfig, DataConfig, FilterConfig, Recipe, TokenizerConfig
from heedful.data.preparation.prepared_data import folded, lines_of, overlap
from heedful.data.preparation.text import prepare_passages, prepare_running_text
from heedful.tasks.classification import Classification
from heedful.tasks.text_to_text import TextToText
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

TRAINING = ["A dog runs.", "Two cats sleep!", "He is 17.", "他睡觉。"]


def test_texts_are_found_exactly_and_almost() -> None:
    found = overlap(["A dog runs.", " A dog runs. ", "a DOG runs", "he's 17", "He is 3.", "他睡觉", "new"], TRAINING)
    assert (found.texts, found.exact, found.near) == (7, 2, 2)
    assert found.examples == ["A dog runs.", "A dog runs.", "a DOG runs"]
    assert "4 of 7 texts (57.1%)" in str(found)
    assert "(2 identical, 2 differing only in case or punctuation): 'A dog runs.'" in str(found)


def test_strangers_and_blank_texts_are_not_found() -> None:
    found = overlap(["", " ", "A dog ran.", "...", "!"], [*TRAINING, "", "?", "..."])
    assert (found.texts, found.exact, found.near, found.examples) == (3, 1, 0, ["..."])


def test_folding_leaves_letters_and_numbers() -> None:
    assert folded("  Straße_No. 17, 3rd—FLOOR!") == folded("STRASSE no 17 , 3rd floor")
    assert folded("Room 17.") != folded("Room 9.")
    assert folded("一二 三。") == "一二三"


def test_short_lines_are_no_trace_of_running_text() -> None:
    assert list(lines_of("ROMEO:\n" + "x" * 41 + "\n")) == ["x" * 41]


def told(make, folder, valid: str, **settings) -> list[str]:
    recipe = Recipe(
        data=DataConfig(
            root=str(folder),
            train=(CorpusConfig(source="train.tsv"),),
            valid=CorpusConfig(source=valid),
            test=CorpusConfig(source="test.tsv"),
            filters=FilterConfig(max_ratio=None),
        ),
        tokenizer=TokenizerConfig(kind="byte", mask=True),
        **settings,
    )
    said: list[str] = []
    make(recipe, folder / "prepared", said.append)
    return [line for line in said if "training data" in line]


def write(folder, **parts: list[str]) -> None:
    for name, rows in parts.items():
        (folder / f"{name}.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


WORDS = ("ab", "ac", "bd", "be", "af", "bg", "ah")
ROWS = [f"sentence {word} stands in the text and is rather long\t{word[0]}" for word in WORDS]
PREPARE = {
    "classification": Classification.prepare,
    "text_to_text": TextToText.prepare,
    "language_model": prepare_running_text,
    "masked_lm": prepare_passages,
}


@pytest.mark.parametrize("task", PREPARE)
def test_every_kind_of_preparation_says_what_validation_and_test_share_with_training(task, tmp_path) -> None:
    write(tmp_path, train=ROWS[:5], valid=[*ROWS[5:], ROWS[0]], test=[ROWS[1].upper().replace("\tA", "\ta"), ROWS[6]])
    valid, test = told(PREPARE[task], tmp_path, "valid.tsv", task=task)
    assert valid.startswith("validation data: 1 of 3 texts (33.3%) is also in the training data (1 identical, 0 ")
    assert test.startswith("test data: 1 of 2 texts (50.0%) is also in the training data (0 identical, 1 ")


def test_nothing_is_said_of_clean_data_and_a_lost_test_set_stops_nothing(tmp_path) -> None:
    write(tmp_path, train=ROWS[:5], valid=ROWS[5:6], test=ROWS[6:])
    assert told(Classification.prepare, tmp_path, "valid.tsv", task="classification") == []
    (tmp_path / "test.tsv").unlink()
    (tmp_path / "train.tsv").write_text("".join(f"{row}\n" for row in ROWS[:4]))
    [line] = told(Classification.prepare, tmp_path, "valid.tsv", task="classification")
    assert line.startswith("test data: not compared with the training data: ")
    assert "test.tsv: no such file" in line


def test_a_test_set_alone_is_not_compared_with_itself(tmp_path) -> None:
    write(tmp_path, test=ROWS)
    said: list[str] = []
    corpus = CorpusConfig(source="test.tsv")
    data = DataConfig(root=str(tmp_path), train=(corpus,), test=corpus, labels=("a", "b"))
    recipe = Recipe(task="classification", data=data, tokenizer=TokenizerConfig(kind="byte"))
    tokenizers = TokenizerPair(*2 * (train_tokenizer(["a"], recipe.tokenizer),))
    opened = Classification.dataset.open_test(recipe, tokenizers, tmp_path / "prepared", said.append)
    assert len(opened.examples.valid) == len(ROWS)
    assert not any("training data" in line for line in said)
