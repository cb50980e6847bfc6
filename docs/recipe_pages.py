"""A hook of mkdocs: READMEs of the recipes and the laboratory are pages, and links between them and docs/ hold on both.

On GitHub a page links to `../../recipes/cifar10/README.md`; on the site `docs` is the root, and `recipes` is in it.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")  # the path in [text](path#anchor)
FRONT_PAGE = {"README.md": "docs/index.md", "README.zh.md": "docs/zh/index.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the index of recipes, the page of each recipe, and the index of the laboratory."""
    for readme in sorted([*ROOT.glob("recipes/**/README.md"), *ROOT.glob("laboratory/README*.md")]):
        files.append(File.generated(config, readme.relative_to(ROOT).as_posix(), abs_src_path=str(readme)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links from file to file of the repository into links from page to page of the site."""
    here = page.file.src_uri

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository(here)), link[1]))
        target = FRONT_PAGE.get(target, target).removeprefix("docs/")
        return posixpath.relpath(target, posixpath.dirname(here) or ".")

    return LINK.sub(on_site, markdown)


def in_repository(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    return page if (ROOT / page).is_file() else f"docs/{page}"
