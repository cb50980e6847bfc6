"""Report of a comparison as one HTML page that needs no network and no script: light, dark, on paper and on a phone."""

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from heedful import __version__
from heedful.compare.charts import Chart, key
from heedful.compare.report import Report
from heedful.compare.samples import Sample
from heedful.compare.sections import Section, Table, sections

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = "report.css"
CODE = re.compile(r"`([^`]+)`")
NUMBERS = re.compile(r"[-+–]?[\d,.]+( ± [\d,.]+)?( ?[%a-zA-Z/]+)?|–")


def html_page(report: Report) -> str:
    """Write the report as an HTML page."""
    style = (files("heedful.compare") / STYLE).read_text(encoding="utf-8")
    names = [system.name for system in report.systems]
    body = "".join(part for section in sections(report) for part in section_parts(section, names))
    title = f"Comparison: {', '.join(names)}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>{body}"
        f"<footer>Written by heedful {escape(__version__)}. All numbers are in report.json.</footer>"
        "</main></body></html>\n"
    )


def section_parts(section: Section, names: list[str]) -> Iterator[str]:
    """Write a section as HTML elements."""
    yield f"<section><h2>{escape(section.title)}</h2>"
    yield from (f"<p>{paragraph(text)}</p>" for text in section.text)
    if section.charts:
        yield legend(names, section.charts)
        yield f'<div class="charts">{"".join(figure(chart) for chart in section.charts)}</div>'
    if section.table:
        yield table(section.table)
    yield from (sample_card(sample, names) for sample in section.samples)
    yield "</section>"


def paragraph(text: str) -> str:
    """Write a paragraph; what stands between backticks is code."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def legend(names: list[str], charts: list[Chart]) -> str:
    """Write which colour, dashes and mark a system has in the charts."""
    drawn = {series.name for chart in charts for series in chart.series}
    items = [f"<li>{key(place)}{escape(name)}</li>" for place, name in enumerate(names) if name in drawn]
    return f'<ul class="legend">{"".join(items)}</ul>'


def figure(chart: Chart) -> str:
    """Write a chart with its caption."""
    return f"<figure><figcaption>{escape(chart.title)}</figcaption>{chart.svg()}</figure>"


def table(found: Table) -> str:
    """Write a table, which scrolls sideways where the page is too narrow for it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in found.head)
    rows = "".join(row(cells, {column for at, column in found.strong if at == i}) for i, cells in enumerate(found.rows))
    return f'<div class="scrolls" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def row(cells: list[str], strong: set[int]) -> str:
    """Write a row of a table, whose first cell names it; numbers stand at the right."""
    first, *others = cells
    written = [f'<th scope="row">{escape(first)}</th>']
    for column, text in enumerate(others, start=1):
        kind = ' class="number"' if NUMBERS.fullmatch(text) else ""
        inside = f"<strong>{escape(text)}</strong>" if column in strong else escape(text)
        written.append(f"<td{kind}>{inside}</td>")
    return f"<tr>{''.join(written)}</tr>"


def sample_card(sample: Sample, names: list[str]) -> str:
    """Write a sentence with the outputs of all systems."""
    best = max(sample.scores.values())
    items = [entry("source", sample.source, ""), entry("reference", sample.reference, "")]
    for name, output in sample.outputs.items():
        score = sample.scores[name]
        kind = ' class="best"' if score == best and len(sample.scores) > 1 else ""
        items.append(entry(name, output, f"{score:.3g}", key(names.index(name)), kind))
    return f"<article><h3>Sentence {sample.number:,}</h3><dl>{''.join(items)}</dl></article>"


def entry(name: str, text: str, score: str, mark: str = "", kind: str = "") -> str:
    """Write one text of a sample: the name, the score and the text."""
    shown = f"<small>{score}</small>" if score else ""
    return f'<div{kind}><dt>{mark}{escape(name)} {shown}</dt><dd dir="auto">{escape(text) or "–"}</dd></div>'
