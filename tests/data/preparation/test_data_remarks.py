"""What is odd about prepared data is said in one line with the remedy: unknown tokens, and what is left out."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from every_task import RECIPES
from heedful.config.schema import Recipe, TokenizerConfig
from heedful.data.readers.drop_report import REASONS, REMEDIES, DropReport, left_out_line, phrase
from heedful.tasks import TASKS

TEXT = ["translation", "classification", "regression", "tagging", "language_model", "masked_lm", "span_qa"]


def prepared(recipe: Recipe, folder: Path) -> list[str]:
    lines: list[str] = []
    TASKS[recipe.task].prepare(recipe, folder, lines.append)
    return lines


def made(task: str, folder: Path, **tokenizer: object) -> Recipe:
    (folder / "data").mkdir()
    recipe = RECIPES[task](folder / "data")
    return replace(recipe, tokenizer=replace(TokenizerConfig(kind="word", byte_fallback=False), **tokenizer))


@pytest.mark.parametrize("task", TEXT)
def test_the_share_of_unknown_tokens_is_said_and_kept(task, tmp_path):
    recipe = made(task, tmp_path, vocab_size=7, mask=task == "masked_lm")
    lines = prepared(recipe, tmp_path / "prepared")
    unknown = [line for line in lines if "are not in the vocabulary (<unk>); raise tokenizer.vocab_size" in line]
    assert unknown
    report = json.loads((tmp_path / "prepared" / "report.json").read_text())
    counts = report["tokens"].values()
    assert len(counts) >= len(unknown)
    assert all(0 <= count["unknown"] <= count["tokens"] for count in counts)
    again = prepared(recipe, tmp_path / "prepared")  # which is said of data that was prepared before, too
    assert [line for line in again if "not in the vocabulary" in line] == unknown


@pytest.mark.parametrize("task", TEXT)
def test_a_vocabulary_that_fits_is_not_remarked_upon(task, tmp_path):
    recipe = made(task, tmp_path, vocab_size=997, mask=task == "masked_lm")
    assert not [line for line in prepared(recipe, tmp_path / "prepared") if "unknown" in line]


def test_many_examples_that_are_left_out_are_said_with_the_remedy(tmp_path):
    recipe = made("classification", tmp_path)
    file = tmp_path / "data" / "train.tsv"
    rows = [line.split("\t") for line in file.read_text().splitlines()]
    for row in rows[:60]:
        row[1] = ""
    file.write_text("".join("\t".join(row) + "\n" for row in rows))
    lines = prepared(recipe, tmp_path / "prepared")
    [line] = [line for line in lines if "of the examples are left out" in line]
    assert line.startswith(
        "16% of the examples are left out, 60 of them for an empty label (first: train.tsv, line 1);"
    )


NO_EXAMPLES = {"header", "being a run, model or recipe folder"}


@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason not in NO_EXAMPLES])
def test_each_reason_has_a_remedy(reason):
    drops = DropReport()
    for line in range(10):
        drops.drop(reason, "a.tsv", line)
    drops.drop("header", "a.tsv", 1)
    assert left_out_line(drops, 91) is None
    what = f"10% of the examples are left out, 10 of them {phrase(reason)} (first: a.tsv, line 0)"
    assert left_out_line(drops, 90) == f"{what}; {REMEDIES[reason]}"
