"""Writes ../errata.md and ../zh/errata.md from rows.toml: python docs/errata/errata_page.py

rows.toml has what the source documents print, in words and numbers. `{document}` and `{right}` in a text stand for two
lists of values: the first is printed or computed, the second is always computed, by the function that a row names.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from string import Formatter
from typing import Any

import errata_attention
import errata_models
import torch
from errata_examples import FOLDER, Values, same

TEXTS = tomllib.loads((FOLDER / "rows.toml").read_text(encoding="utf-8"))
PAGES = {"en": FOLDER.parent / "errata.md", "zh": FOLDER.parent / "zh/errata.md"}


@dataclass(frozen=True)
class Row:
    """A row of the page.

    Attributes:
        id: Names the row in links, and is never given to another row.
        document: The number of the source document.
        verdict: "wrong", "contradiction", "overstated" or "right".
        checklist: The rows of checklist.md that are about the same statement.
        computation: The function that computes the values.
        en: The texts `says`, `correct` and `why` in English; a row that is right needs no `why`.
        zh: The same in Chinese.
        topic: The key of a heading; empty if the row is right.
        printed: What the document prints, with its digits; empty if the document's value is computed.
        arguments: The arguments of the function.
    """

    id: str
    document: str
    verdict: str
    checklist: list[str]
    computation: str
    en: dict[str, str]
    zh: dict[str, str]
    topic: str = ""
    printed: list[str] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)

    def values(self) -> Values:
        module = errata_attention if hasattr(errata_attention, self.computation) else errata_models
        with torch.no_grad():
            computed = getattr(module, self.computation)(*self.arguments)
        return computed | ({"document": self.printed} if self.printed else {})


ROWS = [Row(**row) for row in TEXTS["rows"]]


def agrees(values: Values) -> bool:
    """True if the document's values are the right ones, to the digits that it prints."""
    document, right = values["document"], values["right"]
    return len(document) == len(right) and all(map(same, document, right))


class ValueFormatter(Formatter):
    """Formats numbers with four decimals by default, lists with commas, and `power` as 9.5 · 10¹⁷."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, list):
            return ", ".join(self.format_field(item, format_spec) for item in value)
        if isinstance(value, str):
            return value
        if format_spec == "power":
            mantissa, _, exponent = f"{value:.1e}".partition("e+")
            return f"{mantissa} · 10{exponent.translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
        return format(value, format_spec or ("z.4f" if isinstance(value, float) else ""))


def page(language: str, values: dict[str, Values]) -> str:
    """The whole page."""
    frame = TEXTS["frame"][language]
    parts = [frame["introduction"]]
    errata, right = ([row for row in ROWS if (row.verdict == "right") == wanted] for wanted in (False, True))
    for document, rows in groupby(errata, key=lambda row: row.document):
        parts += ["", f"## {frame['documents'][document]}", "", frame["notes"][document]]
        for topic, section in groupby(rows, key=lambda row: row.topic):
            parts += ["", f"### {frame['topics'][topic]}", "", *table(frame["columns"])]
            parts += [line(row, language, values[row.id]) for row in section]
    parts += ["", frame["right"], "", *table(frame["right_columns"])]
    parts += [line(row, language, values[row.id]) for row in right]
    return "\n".join(parts) + "\n"


def table(columns: list[str]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{' --- |' * len(columns)}"


def line(row: Row, language: str, values: Values) -> str:
    frame, texts = TEXTS["frame"][language], getattr(row, language)
    filled = {key: ValueFormatter().vformat(text, (), values) for key, text in texts.items()}
    links = ", ".join(f"[{name}](checklist.md#{name})" for name in row.checklist)
    anchor = f'<a id="{row.id}"></a>{row.id}'
    if row.verdict == "right":
        cells = [anchor, row.document, filled["says"], filled["correct"], links]
    else:
        verdict = frame["verdicts"][row.verdict]
        cells = [anchor, verdict, filled["says"], filled["correct"], filled["why"], links]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    computed = {row.id: row.values() for row in ROWS}
    for language, path in PAGES.items():
        path.write_text(page(language, computed), encoding="utf-8")
