"""Rules for combinations of recipe values; each file of settings adds those for its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heedful.config.schema import ArchitectureConfig, Recipe


@dataclass(frozen=True)
class Rule:
    """Rule for a combination of recipe values that is refused or remarked upon.

    Attributes:
        at: the key at which to fix it, as an attribute of `KEYS`.
        broken: whether a recipe breaks the rule.
        text: message, a format string over the recipe `r`.
    """

    at: Any
    broken: Callable[[Recipe], bool]
    text: str

    @property
    def key(self) -> str:
        """The dotted key at which to fix it."""
        return str(self.at)


# For each class of [model], the rules of recipes whose model has its settings: those that are refused, and remarks.
RULES: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {}
REMARKS: dict[type[ArchitectureConfig], tuple[Rule, ...]] = {}
