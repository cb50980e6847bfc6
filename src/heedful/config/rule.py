"""Rules for combinations of recipe values."""

from collections.abc import Callable
from dataclasses import dataclass

from heedful.config.schema import Recipe


@dataclass(frozen=True)
class Rule:
    """Rule for a combination of recipe values that is refused or remarked upon; `text` is a format string over `r`."""

    key: str
    broken: Callable[[Recipe], bool]
    text: str
