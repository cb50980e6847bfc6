"""A table whose rows are sorted by class is not cut into pieces by `part` without a word."""

import random
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from every_task import RECIPES
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.tasks import find_task

TABLES = {"all.csv": ("file,label", ","), "all.tsv": ("file\tlabel", "\t")}
FILES = [name for name in RECIPES if name.endswith("_classification")]
SORTED = "all.tsv: the rows are sorted by class, so the rows that `part` selects lack some classes"


def recipe_of(folder: Path, labels: list[str], *, cut: bool = True) -> Recipe:
    made = RECIPES["classification"](folder)
    (folder / "all.tsv").write_text("".join(f"w{number % 7} w{number % 5}\t{x}\n" for number, x in enumerate(labels)))
    piece = replace(made.data.train[0], source="all.tsv", part=(0.0, 0.8) if cut else (0.0, 1.0))
    valid = replace(piece, part=(0.8, 1.0)) if cut else piece
    data = replace(made.data, train=(piece,), valid=valid, filters=replace(made.data.filters, duplicates=True))
    return replace(made, data=data)


def recipe_of_files(task: str, folder: Path, labels: list[str], table: str, *, cut: bool = True) -> Recipe:
    """A recipe whose table names files, of which each has a label."""
    made = RECIPES[task](folder)
    paths = sorted(path for path in folder.rglob("*.*") if path.suffix in (".png", ".wav", ".gif"))
    header, comma = TABLES[table]
    lines = [f"{path}{comma}{label}" for path, label in zip(cycle(paths), labels, strict=False)]
    (folder / table).write_text("\n".join([header, *lines]) + "\n")
    first = replace(made.data.train[0], source=str(folder / table), target=None, source_field="file")
    first = replace(first, target_field="label", part=(0.0, 0.8 if cut else 1.0))
    return replace(made, data=replace(made.data, train=(first,), valid=replace(first, part=(0.8, 1.0)), labels=()))


def remarks(recipe: Recipe, folder: Path) -> list[str]:
    task = find_task(recipe.task)
    return task.prepare(task.dataset.reader.resolve(recipe), folder / "prepared", lambda _: None).data.remarks()


@pytest.mark.parametrize(
    "labels", [["a"] * 50 + ["b"] * 50, ["b"] * 30 + ["a"] * 70, ["a"] * 30 + ["b"] * 30 + ["c"] * 40]
)
def test_sorted_rows_of_which_a_piece_is_taken_are_remarked_upon(labels, tmp_path):
    assert [line for line in remarks(recipe_of(tmp_path, labels), tmp_path) if line.startswith(SORTED)]


@pytest.mark.parametrize("cut", [True, False])
def test_rows_in_another_order_and_whole_tables_are_not(cut, tmp_path):
    labels = ["a"] * 50 + ["b"] * 50
    if cut:
        random.Random(1).shuffle(labels)
    assert not [line for line in remarks(recipe_of(tmp_path, labels, cut=cut), tmp_path) if "sorted" in line]


def test_a_class_that_only_the_second_piece_has_is_refused_with_the_order_as_a_reason(tmp_path):
    with pytest.raises(
        InputError, match=r"'b' is not in data.labels \(a, c\); .*if the rows are sorted by class, shuffle"
    ):
        remarks(recipe_of(tmp_path, ["a"] * 40 + ["c"] * 40 + ["b"] * 20), tmp_path)


@pytest.mark.parametrize("task", FILES)
@pytest.mark.parametrize("table", TABLES)
def test_sorted_tables_of_files_of_which_a_piece_is_taken_are_remarked_upon(task, table, tmp_path):
    recipe = recipe_of_files(task, tmp_path, ["a"] * 12 + ["b"] * 12, table)
    wanted = f"{table}: the rows are sorted by class, so the rows that `part` selects lack some classes"
    assert [line for line in remarks(recipe, tmp_path) if wanted in line]


@pytest.mark.parametrize("task", FILES)
@pytest.mark.parametrize(("labels", "cut"), [(["a", "b"] * 12, True), (["a"] * 12 + ["b"] * 12, False)])
def test_tables_of_files_in_another_order_and_whole_ones_are_not(task, labels, cut, tmp_path):
    recipe = recipe_of_files(task, tmp_path, labels, "all.csv", cut=cut)
    recipe = recipe if cut else replace(recipe, data=replace(recipe.data, valid=None))
    assert not [line for line in remarks(recipe, tmp_path) if "sorted" in line]


@pytest.mark.parametrize("task", FILES)
def test_a_class_of_files_that_only_the_second_piece_has_is_refused_with_the_order_as_a_reason(task, tmp_path):
    recipe = recipe_of_files(task, tmp_path, ["a"] * 10 + ["c"] * 10 + ["b"] * 5, "all.tsv")
    with pytest.raises(
        InputError, match=r"'b' is not in data.labels \(a, c\); .*if the rows are sorted by class, shuffle"
    ):
        remarks(recipe, tmp_path)
