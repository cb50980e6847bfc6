"""Report of a comparison as one HTML page that needs no network and no script: light, dark, on paper and on a phone."""

import re
from importlib.resources import files

from heedful import __version__
from heedful.tools.compare.charts import key
from heedful.tools.compare.report import Report, sections

TEMPLATE, STYLE = "report.html", "report.css"
CODE = re.compile(r"`([^`]+)`")
NUMBERS = re.compile(r"[-+–]?[\d,.]+( ± [\d,.]+)?( ?[%a-zA-Z/]+)?|–")


def html_page(report: Report) -> str:
    """Write the report as an HTML page."""
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
