"""A hook of mkdocs: <eos> and its like in docstrings are text, not HTML."""

import re
from typing import Any


def on_page_content(html: str, **_: Any) -> str:
    """Escape the special tokens of a finished page."""
    return re.sub(r"<(pad|unk|bos|eos)>", r"&lt;\1&gt;", html)
