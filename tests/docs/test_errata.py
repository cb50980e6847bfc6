"""The errata of the source documents: values are computed, verdicts follow from them, and both languages have them."""

import re
from functools import cache
from pathlib import Path

import errata_page
import pytest
from errata_page import PAGES, ROWS, TEXTS, Row, ValueFormatter, agrees, page

ROOT = Path(__file__).parents[2]
CHECKLISTS = {"en": ROOT / "docs/checklist.md", "zh": ROOT / "docs/zh/checklist.md"}
ERRATA = [row for row in ROWS if row.verdict != "right"]
TOPICS = ("tokens", "predecessors", "attention", "layers", "models")
# Rows of the checklist whose statement is wrong, contradictory or overstated in a document.
WRONG = {"T12", "T19", "T21", "W05", "A01", "A02", "A03", "A11", "A20", "L04", "L07", "L14", "D11", "B07"}
WRONG |= {"S12", "S22", "S23", "S24"}


@cache
def values(row_id: str) -> dict[str, object]:
    return next(row for row in ROWS if row.id == row_id).values()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_documents_value_is_the_computed_one_only_where_the_verdict_is_right(row: Row) -> None:
    assert agrees(values(row.id)) == (row.verdict == "right")


@pytest.mark.parametrize("language", PAGES)
def test_the_page_says_what_is_computed(language: str) -> None:
    computed = {row.id: values(row.id) for row in ROWS}
    assert PAGES[language].read_text(encoding="utf-8") == page(language, computed), (
        "run: python docs/errata/errata_page.py"
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_correct_value_of_a_row_is_computed_in_both_languages(row: Row) -> None:
    english, chinese = (set(re.findall(r"{([^}]+)}", text["correct"])) for text in (row.en, row.zh))
    assert english == chinese
    assert any(value.startswith(("right", "rows[")) for value in english)


def test_rows_are_grouped_by_document_and_topic_and_have_ids() -> None:
    order = [(row.document, TOPICS.index(row.topic)) for row in ERRATA]
    assert order == sorted(order)
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert all(re.fullmatch("R[0-9]{2}" if row.verdict == "right" else "E[0-9]{2}", row.id) for row in ROWS)
    assert {row.verdict for row in ERRATA} == set(TEXTS["frame"]["en"]["verdicts"])


def test_every_row_of_the_checklist_that_is_wrong_has_an_erratum() -> None:
    assert WRONG.issubset(name for row in ERRATA for name in row.checklist)


@pytest.mark.parametrize("language", CHECKLISTS)
def test_the_checklist_and_the_errata_link_to_each_other(language: str) -> None:
    lines = CHECKLISTS[language].read_text(encoding="utf-8").splitlines()
    statements = {line[2:5]: line for line in lines if re.match(r"\| [A-Z]\d\d \|", line)}
    links = {name: re.findall(r"errata\.md#(\w+)", line) for name, line in statements.items()}
    assert links == {name: [row.id for row in ERRATA if name in row.checklist] for name in statements}
    linked = {name for row in ROWS for name in row.checklist}
    assert {name for name, line in statements.items() if f'<a id="{name}"></a>' in line} == linked


@pytest.mark.parametrize(
    ("printed", "right", "agree"),
    [
        (["0.45"], [0.4549], True),
        (["0.45"], [0.4551], False),
        (["3.3e18"], [3.2832e18], True),
        (["3.3"], [3.2832e18], False),
        (["-1.34", "7"], [-1.3416, 7.0], True),
        (["1"], [1.0, 2.0], False),
        ([float("nan")], [0.0], False),
        (["post"], ["post"], True),
        (["pre"], ["post"], False),
    ],
)
def test_a_value_agrees_if_it_rounds_to_the_printed_digits(printed: list, right: list, agree: bool) -> None:
    assert agrees({"document": printed, "right": right}) == agree


def test_values_are_formatted_for_people() -> None:
    shown = ValueFormatter().format
    assert shown("[{x}]", x=[0.25, -0.00001]) == "[0.2500, 0.0000]"
    assert shown("{x:power}", x=9.52e17) == "9.5 · 10¹⁷"
    assert shown("{x:,} {y}", x=2048, y="post") == "2,048 post"


def test_every_computation_is_used() -> None:
    modules = (errata_page.errata_attention, errata_page.errata_models)
    computations = {
        name
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
        and getattr(value, "__annotations__", {}).get("return") == errata_page.Values
    }
    assert computations == {row.computation for row in ROWS}
