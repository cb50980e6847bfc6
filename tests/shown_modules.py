"""The modules that how-to pages show, imported as a user's own: properties are tested on what readers copy."""

import re
import sys
from pathlib import Path
from types import ModuleType

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"


def shown_module(page: str, name: str) -> ModuleType:
    """Import the block of a how-to page that its reader saves as `name`.py."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    block = re.search(rf'^```python title="{name}\.py"\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
    assert block, f"{page} shows no {name}.py"
    module = sys.modules[name] = ModuleType(name)
    exec(compile(block[1], f"{page}, {name}.py", "exec"), vars(module))
    return module


gated = shown_module("new-architecture.md", "gated")
GATED = "gated:GatedRecurrent"
normed = shown_module("own-decoder.md", "normed")
averages = shown_module("own-decoder.md", "averages")
rows = shown_module("new-input.md", "rows")
