"""Report of a comparison as an HTML page, which needs no network and no script, and as Markdown without the charts."""

import re
from collections.abc import Iterator
from importlib.resources import files

from heedful import __version__
from heedful.tools.compare.charts import key
from heedful.tools.compare.report import Report, Section, Table, sections

TEMPLATE, STYLE = "report.html", "report.css"
CODE = re.compile(r"`([^`]+)`")
SPECIAL = re.compile(r"([\\|*_<>\[\]`#])")  # of Markdown
NUMBERS = re.compile(r"[-+–]?[\d,.]+( ± [\d,.]+)?( ?[%a-zA-Z/]+)?|–")


def html_page(report: Report) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    folder, names = files("heedful.tools.compare"), [system.name for system in report.systems]
    pages = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    pages.filters["code"] = lambda text: Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))
    pages.filters["drawn"] = lambda charts: {series.name for chart in charts for series in chart.series}
    pages.filters["key"] = lambda name: Markup(key(names.index(name)))
    pages.filters["svg"] = lambda chart: Markup(chart.svg())
    pages.tests["number_like"] = NUMBERS.fullmatch
    return pages.from_string((folder / TEMPLATE).read_text(encoding="utf-8")).render(
        names=names,
        sections=sections(report),
        style=Markup((folder / STYLE).read_text(encoding="utf-8")),
        version=__version__,
    )


def markdown_page(report: Report) -> str:
    """Write the report as Markdown; where the HTML page has charts, this one says where to find them."""
    parts = ["# Comparison of systems", *(text for section in sections(report) for text in section_parts(section))]
    return "\n\n".join(parts) + "\n"


def section_parts(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield from section.text
    if section.table:
        yield markdown_table(section.table)
    if section.charts:
        yield "The charts are in `report.html`, and their numbers in `report.json`."
    for sample in section.samples:
        outputs = [[name, f"{sample.scores[name]:.3g}", output] for name, output in sample.outputs.items()]
        rows = [["source", "", sample.source], ["reference", "", sample.reference], *outputs]
        yield markdown_table(Table([f"sentence {sample.number}", "score", "text"], rows))


def markdown_table(table: Table) -> str:
    """Write a table; cells that stand out are bold."""
    rows = [
        [
            f"**{escaped(cell)}**" if (row, column) in table.strong else escaped(cell)
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(table.rows)
    ]
    lines = [[escaped(name) for name in table.head], ["---"] * len(table.head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escaped(text: str) -> str:
    """Escape characters that Markdown would take for markup; a text becomes one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
