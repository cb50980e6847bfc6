"""The list of the source documents' statements: complete in both languages, with evidence that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {"en": ROOT / "docs/checklist.md", "zh": ROOT / "docs/zh/checklist.md"}
COUNTS = {"T": 25, "W": 19, "A": 26, "L": 30, "D": 17, "B": 16, "V": 8, "X": 8, "F": 10, "S": 24}
ROW = re.compile(r"\| ([A-Z]\d\d) \| (.+?) \| (.+) \|$")
CLAUSE = {  # tests of one file, as each language writes them
    "en": re.compile(r"((?:`test_\w+`(?:, | and )?)+) in `(tests/[\w/]+\.py)`"),
    "zh": re.compile(r"`(tests/[\w/]+\.py)` 里的 ((?:`test_\w+`[、和]?)+)"),
}


def rows(language: str) -> dict[str, str]:
    """The evidence of each statement."""
    matches = map(ROW.match, PAGES[language].read_text(encoding="utf-8").splitlines())
    return {match[1]: match[3] for match in matches if match}


def named_tests(language: str, evidence: str) -> set[tuple[str, str]]:
    clauses = [match if language == "zh" else match[::-1] for match in CLAUSE[language].findall(evidence)]
    return {(file, name) for file, names in clauses for name in re.findall(r"test_\w+", names)}


@pytest.mark.parametrize("language", PAGES)
def test_every_statement_of_the_source_documents_has_a_row(language):
    assert list(rows(language)) == [f"{topic}{n:02}" for topic, count in COUNTS.items() for n in range(1, count + 1)]


@pytest.mark.parametrize("language", PAGES)
def test_every_test_recipe_and_page_that_is_named_exists(language):
    for statement, evidence in rows(language).items():
        named = named_tests(language, evidence)
        # Every name belongs to a file, so that none escapes the check.
        assert {name for _, name in named} == set(re.findall(r"`(test_\w+)`", evidence)), statement
        for file, name in named:
            assert re.search(rf"def {name}\(", (ROOT / file).read_text(encoding="utf-8")), (statement, file, name)
        for recipe in re.findall(r"`(recipes/[\w-]+)`", evidence):
            assert (ROOT / recipe).is_dir(), (statement, recipe)
        for link in re.findall(r"\]\(([^)#]+)", evidence):
            assert (PAGES[language].parent / link).is_file(), (statement, link)


def test_both_languages_name_the_same_evidence():
    english, chinese = rows("en"), rows("zh")
    for statement, evidence in english.items():
        assert named_tests("en", evidence) == named_tests("zh", chinese[statement]), statement
        recipes = [sorted(re.findall(r"`(recipes/[\w-]+)`", row)) for row in (evidence, chinese[statement])]
        assert recipes[0] == recipes[1], statement


def test_a_statement_is_marked_as_open_in_both_languages():
    chinese = rows("zh")
    for statement, evidence in rows("en").items():
        assert evidence.startswith("Open") == chinese[statement].startswith("尚未检验"), statement
