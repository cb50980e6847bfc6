"""Names of columns and keys as people write them: in any case, with spaces around them, or with a slip."""

from collections.abc import Sequence
from difflib import get_close_matches


class Missing:
    """Type of `MISSING`, which stands for the value of a key that a JSON object lacks."""


MISSING = Missing()


def find_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is meant: an equal one, or the only one that differs in case or outer spaces alone."""
    if name in known:
        return name
    meant = {other for other in known if folded(other) == folded(name)}
    return meant.pop() if len(meant) == 1 else None


def hint_of_name(name: str, known: Sequence[str]) -> str:
    """Return " (did you mean ...?)" with the known names that are near a name, or an empty text if there are none."""
    names = {folded(other): other for other in known}
    near = get_close_matches(folded(name), names, n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(names[match]) for match in near)}?)" if near else ""


def folded(name: str) -> str:
    """Return a name as names are compared: without regard to case and outer spaces."""
    return name.strip().casefold()
