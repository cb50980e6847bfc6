"""Figures that stand in several places are the same in all of them, and those of the benchmarks were measured."""

import json
import re
from pathlib import Path
from statistics import median

import pytest
from pages import ROOT, name_of, rows, table_commands

READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
INDEX = ROOT / "recipes/README.md"
RECIPES = sorted((ROOT / "recipes").glob("*/README.md"))
MADE_WITH = re.compile(r"\sin\s+(bfloat16|float32)\s.*?\s+of\s+an\s+(AMD\s+EPYC|Intel\s+Xeon)", re.DOTALL)
BENCHMARK = ROOT / "benchmarks/train_step.jsonl"


def decimals(text: str) -> list[str]:
    """The numbers with a point; sizes in millions are written in another way in Chinese."""
    return re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\d| million)", text)


def results(page: Path) -> list[tuple[set[str], list[str]]]:
    """The recipes in each row of the tables of results, and the figures of what came out."""
    found = [(set(re.findall(r"\]\((?:recipes/)?([\w-]+)/README", row[0])), decimals(row[-1])) for row in rows(page)]
    return [(recipes, figures) for recipes, figures in found if recipes]


def speeds(page: Path) -> list[tuple[int, float, int, float]]:
    """The rows of the table of training speeds: tokens a second and ratio, of two sizes."""
    cells = [[re.sub(r"[*,]", "", cell) for cell in row[1:]] for row in rows(page) if len(row) == 5]
    numbers = [row for row in cells if all(re.fullmatch(r"[\d.]+", cell) for cell in row)]
    return [(int(a), float(b), int(c), float(d)) for a, b, c, d in numbers]


@pytest.mark.parametrize("page", [*READMES, INDEX], ids=name_of)
def test_a_result_stands_on_the_page_of_its_recipe(page: Path) -> None:
    for recipes, figures in results(page):
        pages = [ROOT / "recipes" / recipe / "README.md" for recipe in recipes]
        told = [float(number) for page in pages for number in decimals(page.read_text(encoding="utf-8"))]
        for figure in figures:
            places = len(figure.partition(".")[2])
            assert [number for number in told if f"{number:.{places}f}" == figure], f"{recipes}: {figure}"


@pytest.mark.parametrize("page", RECIPES, ids=name_of)
def test_the_first_paragraph_of_a_result_names_the_precision_and_the_processor(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    _, heading, result = text.partition("## Result\n\n")
    if "## Published results\n\n" in text:  # for a recipe that was not trained here
        assert not heading
        assert not page.with_name("results.toml").exists()
        return
    assert MADE_WITH.search(result.partition("\n\n")[0])


def test_both_languages_tell_the_same() -> None:
    english, chinese = READMES
    assert results(english) == results(chinese)
    assert speeds(english) == speeds(chinese)
    assert [code.text for code in table_commands(english)] == [code.text for code in table_commands(chinese)]
    assert min(len(results(english)), len(speeds(english)), len(table_commands(english))) > 5


def test_the_speeds_were_measured_and_each_column_in_one_run() -> None:
    lines = [json.loads(line) for line in BENCHMARK.read_text().splitlines()]
    runs = [line["results"].values() for line in lines if "results" in line]
    medians = [{round(median(one["tokens"] for one in system)) for system in systems} for systems in runs]
    table = speeds(READMES[0])
    [plain] = (row for row in table if row[1] == row[3] == 1)
    for column in (0, 2):
        shown = {row[column] for row in table}
        assert [run for run in medians if shown <= run], f"no run of train_step.py has all of {shown}"
        assert all(row[column + 1] == round(row[column] / plain[column], 2) for row in table)


@pytest.mark.parametrize("page", READMES, ids=name_of)
def test_each_result_has_a_row_in_experiments_with_its_command_machine_and_commit(page: Path) -> None:
    recorded = {
        row[0].strip("`"): row for row in rows(ROOT / "EXPERIMENTS.md") if len(row) == 5 and "heedful train" in row[1]
    }
    for recipes, figures in results(page):
        (recipe,) = recipes
        _, _, machine, result, commit = recorded[recipe]
        assert set(figures) <= set(decimals(result)), recipe
        assert re.search(r"AMD EPYC|Intel Xeon", machine)
        assert re.fullmatch(r"2026-\d\d-\d\d, [0-9a-f]{8}", commit)


def test_the_speeds_of_translation_were_measured_and_each_beam_in_one_run() -> None:
    lines = [json.loads(line) for line in (ROOT / "benchmarks/decode.jsonl").read_text().splitlines()]
    runs = []
    for line in lines:
        systems = line["results"].values()
        rates = {f"{median(one['rate'] for one in system):,.0f}" for system in systems}
        runs.append(rates | {f"{median(one['alone'] for one in system) * 1e3:.1f} ms" for system in systems})
    english, chinese = ([row[1:] for row in rows(page) if len(row) == 5 and row[2].endswith(" ms")] for page in READMES)
    assert english == chinese
    for columns in (slice(0, 2), slice(2, 4)):
        shown = {cell for row in english for cell in row[columns]}
        assert len(shown) == 6
        assert [run for run in runs if shown <= run], f"no run of decode.py has all of {shown}"
