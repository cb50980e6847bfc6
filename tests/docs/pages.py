"""What the pages of the documentation show: blocks of code, code in sentences, and what a reader would type."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*/README.md")]
FENCE = re.compile(r'^```(\w*)(?: title="([^"\n]+)")?[^\n]*\n(.*?)^```', re.MULTILINE | re.DOTALL)
UNRUN = re.compile(r"<!-- not run: (.+) -->\n+\Z")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Code:
    """Something between backticks: a fenced block in a language, or a span in a line of text."""

    page: Path
    line: int
    language: str  # "" of a span
    text: str
    unrun: str | None = None  # why nobody can run it here; stands in a comment before the block
    title: str | None = None  # the name of the file that a block is to be saved as

    @property
    def place(self) -> str:
        """Where a reader finds it: README.md:12."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def name_of(page: Path) -> str:
    """The page below the repository's root, to name a test."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[Code]:
    """The fenced blocks of a page in these languages; `line` is that of their first line of code."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        if match[1] in languages:
            reason = UNRUN.search(text[: match.start()])
            line = text.count("\n", 0, match.start(3)) + 1
            found.append(Code(page, line, match[1], match[3], reason and reason[1], match[2]))
    return found


def spans(page: Path) -> Iterator[Code]:
    """The code in the text of a page, outside its blocks."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(text.split("\n"), start=1):
        for match in SPAN.finditer(line):
            yield Code(page, number, "", match[1].replace(r"\|", "|"))


def rows(page: Path) -> list[list[str]]:
    """The cells of every row of the page's tables."""
    lines = page.read_text(encoding="utf-8").split("\n")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def table_commands(page: Path) -> list[Code]:
    """The commands in tables that can be typed as they stand: `heedful COMMAND ...` with an option."""
    lines = page.read_text(encoding="utf-8").split("\n")
    return [code for code in spans(page) if lines[code.line - 1].startswith("|") and runs(code.text)]


def runs(text: str) -> bool:
    """Whether this is a whole command of heedful, not the name of one."""
    return text.startswith("heedful ") and " --" in text and "..." not in text


def steps(page: Path) -> list[Code]:
    """What a reader types or saves, from top to bottom."""
    files = [code for code in blocks(page, "html", "text") if code.title]
    found = [*files, *blocks(page, "bash", "console", "python", "toml"), *table_commands(page)]
    return sorted(found, key=lambda code: code.line)


def shown(page: Path) -> list[tuple[str, str]]:
    """What a page has in its blocks, and the commands in its tables, without comments: the same in both languages."""
    found = [*blocks(page, "bash", "console", "json", "python", "text", "toml"), *table_commands(page)]
    return [(code.language, re.sub(r" *#.*", "", code.text)) for code in sorted(found, key=lambda code: code.line)]
