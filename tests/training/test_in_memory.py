"""Training on data that a program holds: rows, columns, data frames, iterables, for every task."""

import json
from datetime import date
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import heedful
from every_task import RECIPES
from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.training.in_process import with_data
from reversal import recipe as reversal

TEXTS, LABELS = ["a good film", 'a "bad"\tone\nof two lines', "très bien"], ["pos", "neg", "pos"]
LABELLED = [{"source": text, "target": label} for text, label in zip(TEXTS, LABELS, strict=True)]
TEXT_TASKS = {"language_model": "train.txt", "masked_lm": "train.txt", "word_vectors": "text.txt"}
CLASSIFICATION = Recipe(task="classification")


def frame(columns: dict[str, list]) -> Any:
    """What pandas' data frames have that is asked for."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return SimpleNamespace(columns=list(columns), to_dict=lambda orient: rows if orient == "records" else None)


def written(recipe: Recipe, data: object, folder: Path) -> list[dict]:
    corpus = with_data(recipe, data, folder).data.train[0]
    return [json.loads(line) for line in Path(corpus.source).read_text().splitlines()]


KINDS = {
    "tuples": lambda: list(zip(TEXTS, LABELS, strict=True)),
    "lists": lambda: [list(row) for row in zip(TEXTS, LABELS, strict=True)],
    "an iterator": lambda: zip(TEXTS, LABELS, strict=True),
    "dictionaries": lambda: LABELLED,
    "usual names": lambda: [{"id": 3, "label": row["target"], "text": row["source"]} for row in LABELLED],
    "other names": lambda: [{"mine": row["source"], "yours": row["target"]} for row in LABELLED],
    "columns": lambda: {"text": TEXTS, "label": LABELS},
    "arrays": lambda: {"text": np.array(TEXTS), "label": np.array(LABELS)},
    "a data frame": lambda: frame({"text": TEXTS, "label": LABELS}),
    "a table of polars": lambda: SimpleNamespace(to_dicts=lambda: LABELLED),
    "a table of pyarrow": lambda: SimpleNamespace(to_pylist=lambda: LABELLED),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_data_are_the_same_examples(kind, tmp_path):
    assert written(CLASSIFICATION, KINDS[kind](), tmp_path) == LABELLED


def test_a_data_frame_of_pandas_is_training_data(tmp_path):
    pandas = pytest.importorskip("pandas")
    assert written(CLASSIFICATION, pandas.DataFrame({"text": TEXTS, "label": LABELS}), tmp_path) == LABELLED
    assert written(Recipe(task="language_model"), pandas.Series(TEXTS), tmp_path) == [{"source": t} for t in TEXTS]
    scores = pandas.DataFrame({"text": TEXTS, "score": np.array([1, 2, 3], np.float32)})
    assert [row["target"] for row in written(Recipe(task="regression"), scores, tmp_path)] == [1, 2, 3]


def test_the_columns_that_the_recipe_names_are_read(tmp_path):
    corpus = CorpusConfig(source="x.tsv", source_field="body", target_field="rating")
    recipe = Recipe(task="classification", data=DataConfig(train=(corpus,)))
    rows = [{"title": "no", "body": row["source"], "text": "no", "rating": row["target"]} for row in LABELLED]
    assert written(recipe, rows, tmp_path) == LABELLED


@pytest.mark.parametrize("nested", [False, True])
def test_languages_name_the_columns_of_translations(nested, tmp_path):
    recipe = Recipe(data=DataConfig(source_language="de", target_language="en"))
    row = {"en": "one", "de": "eins", "fr": "un"}
    rows = [{"translation": row} if nested else row]
    assert written(recipe, rows, tmp_path) == [{"source": "eins", "target": "one"}]


def test_a_title_is_not_the_text_where_there_is_a_text(tmp_path):
    rows = [{"title": "no", "date": "today", "text": "yes", "topic": "a", "label": "b"}]
    assert written(CLASSIFICATION, rows, tmp_path) == [{"source": "yes", "target": "b"}]


def test_a_second_text_stands_before_the_label(tmp_path):
    rows = [("a", "b", "same"), ("c", "d", "other")]
    corpus = with_data(CLASSIFICATION, rows, tmp_path).data.train[0]
    assert corpus.pair_field == "pair"
    assert json.loads(Path(corpus.source).read_text().splitlines()[0]) == {"source": "a", "pair": "b", "target": "same"}


@pytest.mark.parametrize("name", ["valid", "validation"])
def test_parts_are_named(name, tmp_path):
    data = {"train": LABELLED, name: iter(LABELLED[:1]), "test": {"text": TEXTS[:2], "label": LABELS[:2]}}
    made = with_data(CLASSIFICATION, data, tmp_path).data
    corpora = (made.train[0], made.valid, made.test)
    assert [len(Path(corpus.source).read_text().splitlines()) for corpus in corpora if corpus] == [3, 1, 2]


@pytest.mark.parametrize(
    ("task", "data", "message"),
    [
        ("classification", [], "train: the data is empty"),
        ("classification", ["a text"], r"train, row 1: 'a text' .str. is not an example; give \(source, target\)"),
        ("classification", [("a", "b"), ("c",)], "train, row 2: .* is not an example"),
        (
            "classification",
            [{"a": 1, "b": 2, "c": 3, "d": 4}],
            r"row 1: cannot tell which keys to read \('a', 'b', 'c', 'd'\)",
        ),
        ("classification", {"text": ["a", "b"], "label": ["x"]}, "columns of a mapping must be lists of equal length"),
        ("classification", {"text": "a", "label": "b"}, "columns of a mapping must be lists of equal length"),
        ("classification", 7, "7 .int. is not training data"),
        ("language_model", [("a", "b")], r"is not an example; give \(source\)"),
        (
            "classification",
            [("a", "b"), (b"a text", "b")],
            "row 2: b'a text' .bytes. is not a string or a number",
        ),
        ("classification", [("a", date(2020, 1, 2))], "train, row 1: datetime.date.* is not a string or a number"),
        ("tagging", [(["a", "b"], ["O"])], "row 1: 2 words but 1 tag; give one tag per word"),
        ("classification", [("a", np.zeros(7))], "train, row 1: array.* is not a string or a number"),
        ("tagging", [(["a", None], ["O", "O"])], "train, row 1: a word or a tag is missing"),
        ("tagging", [(["a", "b"], ["O", float("nan")])], "train, row 1: a word or a tag is missing"),
        ("tagging", [(["a\tb"], ["O"])], "is not a word"),
        ("tagging", ["a b"], "is not a sentence; give .words, tags., two lists"),
        ("span_qa", [("who?", "a text", "answer")], "the context does not contain the answer 'answer'"),
        ("span_qa", ["who?"], "is not a question"),
    ],
)
def test_what_is_not_an_example_is_named_with_its_row(task, data, message, tmp_path):
    with pytest.raises(InputError, match=message):
        with_data(Recipe(task=task), data, tmp_path)


class NAType:
    """The missing value of pandas, as far as it is known by its type."""


@pytest.mark.parametrize(
    "missing", [None, float("nan"), np.float64("nan"), NAType()], ids=["None", "nan", "numpy", "pandas"]
)
def test_a_missing_label_is_not_a_class(missing, tmp_path):
    rows = [("a good film", "pos"), ("a bad film", missing)]
    assert written(CLASSIFICATION, rows, tmp_path)[1] == {"source": "a bad film", "target": None}


def test_a_decimal_is_a_number(tmp_path):
    assert written(Recipe(task="regression"), [("a", Decimal("1.5"))], tmp_path) == [{"source": "a", "target": 1.5}]


def examples(task: str, folder: Path) -> list:
    """Rows for a task."""
    answers = {"text": ["house"], "answer_start": [4]}
    special = {
        "tagging": [(["ada", "saw", "U.S."], ["B-person", "O", "B-place"]), {"tokens": ["mr"], "ner_tags": ["O"]}],
        "span_qa": [("Which?", "the house", "house"), {"question": "Who?", "context": "the house", "answers": answers}],
        "regression": [("w1 good", "w2", 0.25), ("bad w3", "w1", -0.5)],
    }
    if task in TEXT_TASKS:
        return (folder / TEXT_TASKS[task]).read_text().splitlines()
    if task == "masked_patches":
        return files(folder)
    if task == "image_text_retrieval" or find_task(task).dataset.reads_files:
        sides = ("left", "right") if task != "image_text_retrieval" else map("picture {}".format, range(999))
        return list(zip(files(folder), cycle(sides), strict=False))
    return special.get(task, [("w1 w2 w3", "w3 w2 w1"), ("w5 w7", "w7 w5")]) * 9


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.*") if path.suffix in (".png", ".wav", ".gif"))


@pytest.mark.parametrize("task", RECIPES)
def test_every_task_is_prepared_from_rows(task, tmp_path):
    (tmp_path / "data").mkdir()
    recipe = RECIPES[task](tmp_path / "data")
    rows = examples(task, tmp_path / "data")
    made = with_data(recipe, {"train": rows, "valid": rows}, tmp_path / "run")
    prepared = find_task(task).prepare(made, tmp_path / "prepared", lambda _: None)
    assert prepared.data.epoch(0)


def test_training_on_rows_is_training_on_their_file_and_resumes(text, tmp_path):
    pairs = [("w1 w2", "w2 w1"), ("w3 w5", "w5 w3")] * 9
    values = {"max_updates": 2, "validate_every": 2, "save_every": 1, "average_last": 1}
    recipe, quiet = reversal(text, train=values), Console(quiet=True)
    result = heedful.train(recipe, tmp_path / "run", {"train": iter(pairs), "valid": pairs[:2]}, console=quiet)
    assert result.update == 2
    assert {"bleu", "loss"} <= result.scores.keys()
    longer = reversal(text, train=values | {"max_updates": 3})
    assert heedful.train(longer, tmp_path / "run", {"train": pairs, "valid": pairs[:2]}, console=quiet).update == 3
    with pytest.raises(InputError, match="data has changed"):
        heedful.train(longer, tmp_path / "run", {"train": pairs[1:], "valid": pairs[:2]}, console=quiet)
