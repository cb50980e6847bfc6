"""A Chinese page has what its English twin has: the same code, comments aside, and as many rows of tables.

So `test_pages.py` runs the code of both by running that of the English page.
"""

from pathlib import Path

import pytest
from pages import PAGES, ROOT, name_of, rows, shown

CHINESE = sorted((ROOT / "docs/zh").rglob("*.md"))
ENGLISH = {page.name: page for page in PAGES if ROOT / "docs" in page.parents and page not in CHINESE}
TWINS = [(ROOT / "README.md", ROOT / "README.zh.md"), *((ENGLISH[page.name], page) for page in CHINESE)]


@pytest.mark.parametrize(("english", "chinese"), TWINS, ids=[name_of(page) for _, page in TWINS])
def test_both_languages_show_the_same_code(english: Path, chinese: Path) -> None:
    assert shown(chinese) == shown(english)


@pytest.mark.parametrize(("english", "chinese"), TWINS, ids=[name_of(page) for _, page in TWINS])
def test_both_languages_have_the_same_rows(english: Path, chinese: Path) -> None:
    assert [len(row) for row in rows(chinese)] == [len(row) for row in rows(english)]
