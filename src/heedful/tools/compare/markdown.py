"""Report of a comparison as Markdown, without the charts."""

import re
from collections.abc import Iterator

from heedful.tools.compare.report import Report, Section, Table, sections
from heedful.tools.compare.statistics import SampleOutputs

SPECIAL = re.compile(r"([\\|*_<>\[\]`#])")


def markdown_page(report: Report) -> str:
    """Write the report as Markdown; where the HTML page has charts, this one says where to find them."""
    parts = ["# Comparison of systems", *(text for section in sections(report) for text in section_parts(section))]
    return "\n\n".join(parts) + "\n"


def section_parts(section: Section) -> Iterator[str]:
    """Write a section as blocks of Markdown."""
    yield f"## {section.title}"
    yield from section.text
    if section.table:
        yield table(section.table)
    if section.charts:
        yield "The charts are in `report.html`, and their numbers in `report.json`."
    for sample in section.samples:
        yield sample_table(sample)


def table(found: Table) -> str:
    """Write a table; cells that stand out are bold."""
    rows = [
        [
            f"**{escaped(cell)}**" if (row, column) in found.strong else escaped(cell)
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(found.rows)
    ]
    lines = [[escaped(name) for name in found.head], ["---"] * len(found.head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def sample_table(sample: SampleOutputs) -> str:
    """Write a sentence with the outputs of all systems as a table."""
    outputs = [[name, f"{sample.scores[name]:.3g}", output] for name, output in sample.outputs.items()]
    rows = [["source", "", sample.source], ["reference", "", sample.reference], *outputs]
    return table(Table([f"sentence {sample.number}", "score", "text"], rows))


def escaped(text: str) -> str:
    """Escape characters that Markdown would take for markup; a text becomes one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
