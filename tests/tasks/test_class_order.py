"""A table whose rows are sorted by class is not cut into pieces by `part` without a word."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from every_task import RECIPES
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.tasks import find_task

SORTED = "all.tsv: its rows are sorted by class, and part takes a piece of them"


def recipe_of(folder: Path, labels: list[str], *, cut: bool = True) -> Recipe:
    made = RECIPES["classification"](folder)
    (folder / "all.tsv").write_text("".join(f"w{number % 7} w{number % 5}\t{x}\n" for number, x in enumerate(labels)))
    piece = replace(made.data.train[0], source="all.tsv", part=(0.0, 0.8) if cut else (0.0, 1.0))
    valid = replace(piece, part=(0.8, 1.0)) if cut else piece
    data = replace(made.data, train=(piece,), valid=valid, filters=replace(made.data.filters, duplicates=True))
    return replace(made, data=data)


def remarks(recipe: Recipe, folder: Path) -> list[str]:
    task = find_task(recipe.task)
    return task.prepare(task.resolve(recipe), folder / "prepared", lambda _: None).data_remarks()


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
    with pytest.raises(InputError, match=r"'b' is none of the classes a, c; .*where rows are sorted by class, shuffle"):
        remarks(recipe_of(tmp_path, ["a"] * 40 + ["c"] * 40 + ["b"] * 20), tmp_path)
