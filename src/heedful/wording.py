"""Numbers in sentences: 1 line, 1,200 lines, 12 min."""


def counted(number: int, things: str) -> str:
    """A number of things, as in "1 line" and "1,200 lines"; what they are is given in the plural."""
    return f"{number:,} {singular(things) if number == 1 else things}"


def singular(things: str) -> str:
    """Return the singular of an English plural: line, query, batch and class of lines, queries, batches and classes."""
    if things.endswith("ies"):
        return f"{things[:-3]}y"
    return things.removesuffix("es" if things.endswith(("ches", "sses")) else "s")


def duration(seconds: float) -> str:
    """A length of time in the unit that fits: 42 s, 12 min, 3.5 h; never less than 0 s."""
    seconds = max(seconds, 0.0)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def speed(rate: float) -> str:
    """A number a second: whole from ten on, two digits below."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
