"""Each page works as it stands: its commands, recipes and Python, from top to bottom, on the output of one another.

Training is cut to a few updates (`hasty.py`), the text is a few hundred sentences (`materials.py`), and what only sets
things up is left out (`reader.SKIPPED`). A block that cannot run here says so to whoever reads the page's source:
`<!-- not run: why -->` in the line before it. Pages of recipes are for data that is not here, or that is made for
minutes; `test_prose.py` looks at their commands. A Chinese page shows the very code of its English twin, which
`test_twins.py` holds, and so it is run once.
"""

import os
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import materials
import pytest
from pages import FENCE, PAGES, ROOT, Code, name_of, steps
from reader import Reader, hasty_tools

from installed_package import install

CHINESE = {ROOT / "README.zh.md", *(ROOT / "docs/zh").rglob("*.md")}
RECORD = ROOT / "EXPERIMENTS.md"  # of commands of their day
READ = [
    page for page in PAGES if page not in {*CHINESE, RECORD} and page.parent.parent != ROOT / "recipes" and steps(page)
]
FIRST = ("README.md", "docs/how-to/convert.md", "docs/how-to/own-data.md")  # that `make test` follows
LABORATORY = ROOT / "docs/laboratory"  # tests/test_laboratory.py runs them, made small
UNRUN = {  # blocks
    "docs/performance.md": 4,
    "docs/how-to/clusters.md": 2,
    "docs/how-to/fast-translation.md": 1,
    "docs/how-to/convert.md": 4,
    "docs/how-to/large-jobs.md": 3,
    "docs/how-to/run-goes-wrong.md": 1,
    "docs/how-to/several-processes.md": 2,
    "docs/reference/data.md": 1,
    **{name_of(page): 1 for page in LABORATORY.glob("*.md")},
}
CODE = {"bash", "console", "python", "toml"}
NO_CODE = {"html", "json", "text", "yaml"}  # data, and what a command prints


def has_a_gpt(reader: Reader) -> None:
    """The reader has trained the GPT of the page before, in the same language."""
    for code in steps(ROOT / "docs/how-to/bert-and-gpt.md")[:2]:
        reader.follow(code)


def has_a_run(reader: Reader) -> None:
    """The reader has trained a small translator, for longer than tests otherwise do."""
    training = "import heedful; heedful.train('mine.toml', out='runs/mine', data='DATA')"
    reader.follow(Code(Path(__file__), 1, "python", training))
    reader.leave()


def has_installed_the_package(reader: Reader) -> None:
    """The package that the page shows is installed from the reader's folder."""
    [described] = [code.text for code in steps(ROOT / "docs/how-to/own-package.md") if code.title == "pyproject.toml"]
    package = tomllib.loads(described)["project"]
    install(reader.folder, package["name"], {}, package["entry-points"])
    reader.environment["PYTHONPATH"] = os.pathsep.join([reader.environment["PYTHONPATH"], str(reader.folder)])


BEFORE: dict[str, Callable[[Reader], None]] = {
    "docs/how-to/convert.md": has_a_gpt,
    "docs/how-to/inspector.md": has_a_run,
    "docs/how-to/own-package.md": has_installed_the_package,
    "docs/how-to/run-goes-wrong.md": has_a_run,
}


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the pages take for granted; each reader gets a copy."""
    folder = tmp_path_factory.mktemp("desk")
    materials.lay_out(folder)
    return folder


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with hasty_tools(tmp_path_factory.mktemp("tools")) as folder:
        yield folder


@pytest.fixture
def reader(desk: Path, tools: Path, tmp_path: Path) -> Iterator[Reader]:
    made = Reader(shutil.copytree(desk, tmp_path / "desk", symlinks=True), tools)
    yield made
    made.leave()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if name_of(page) in FIRST else pytest.mark.slow, id=name_of(page)) for page in READ],
)
def test_what_a_page_shows_works_in_its_order(page: Path, reader: Reader) -> None:
    BEFORE.get(name_of(page), lambda _: None)(reader)
    for code in steps(page):
        reader.follow(code)


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_every_block_is_code_that_is_followed_or_no_code(page: Path) -> None:
    assert {match[1] for match in FENCE.finditer(page.read_text(encoding="utf-8"))} <= CODE | NO_CODE


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    counts = {name_of(page): sum(code.unrun is not None for code in steps(page)) for page in READ}
    assert {page: count for page, count in counts.items() if count} == UNRUN
