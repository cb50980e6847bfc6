"""The HTML page stands alone and shows every point; Markdown has the same tables."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from heedful.tools.compare.report import escaped, html_page, markdown_page, sections

VOID = {"meta", "path", "line"}


class Page(HTMLParser):
    """Elements of a page, and whether each is closed in its order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_else(compared):
    _, outcome = compared
    text = html_page(outcome.report)
    page = Page(text)
    assert not [value for _, attributes in page.found for name, value in attributes.items() if name in ("src", "href")]
    assert not re.search(r"https?:|@import|url\(", text)
    assert not [tag for tag, _ in page.found if tag in ("script", "link", "img")]


def test_every_curve_has_its_points(compared):
    _, outcome = compared
    report = outcome.report
    charts = [chart for section in sections(report) for chart in section.charts]
    curves = [chart for chart in charts if " against " in chart.title]
    assert len(curves) == 9
    for chart in curves:
        svg = chart.svg()
        assert svg in html_page(report)
        assert svg.count('class="line"') == len(chart.series) == 2
        assert svg.count('class="mark"') == sum(len(series.points) for series in chart.series)
        for path, series in zip(re.findall(r'class="line" d="M([^"]+)"', svg), chart.series, strict=True):
            assert path.count("L") == len(series.points) - 1


def test_both_pages_have_all_tables_and_samples(compared):
    _, outcome = compared
    report = outcome.report
    html, markdown = html_page(report), markdown_page(report)
    for section in sections(report):
        assert f"<h2>{section.title}</h2>" in html
        assert f"## {section.title}\n" in markdown
        for row in section.table.rows if section.table else []:
            for cell in row:
                assert escaped(cell) in markdown
    titles = [section.title for section in sections(report)]
    assert titles == [
        "Systems", "Failed", "Differences", "Curves", "Score by length", "Where systems differ most",
        "First sentences of the test set", "What differs", "How this was measured",
    ]  # fmt: skip


def test_markup_in_a_text_stays_text(compared):
    _, outcome = compared
    systems = [replace(one, error=one.error and "<script>alert('a')</script>") for one in outcome.report.systems]
    text = html_page(replace(outcome.report, systems=systems))
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#39;a&#39;)&lt;/script&gt;" in text
    assert escaped("a <b> | *c*\n`d`") == r"a \<b\> \| \*c\* \`d\`"
