"""Format the comparison of two systems for `heedful evaluate --against`: a table of scores, and verdicts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.evaluate import Comparison, Resampled


def comparison_lines(baseline: str, system: str, comparisons: Sequence["Comparison"], digits: int = 2) -> list[str]:
    """Format the comparison of two systems as lines: a table with a row per score, then a verdict on each score.

    Args:
        baseline: The name of the baseline system.
        system: The name of the system that is compared with the baseline.
        comparisons: The comparison of both systems for each score.
        digits: Decimals of a score.
    """
    signed = any(found.signature for found in comparisons)
    rows = [("", f"{baseline} (baseline)", system, "p-value", "signature" if signed else "")]
    for found in comparisons:
        scores = (interval(found.baseline, digits), interval(found.system, digits))
        rows.append((found.name, *scores, f"{found.p_value:7.4f}", found.signature))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*table, "", *(verdict(baseline, system, found, digits) for found in comparisons)]


def interval(found: "Resampled", digits: int) -> str:
    """Format a score with its mean and 95 % interval over bootstrap resamples."""
    return f"{found.value:6.{digits}f} ({found.mean:.{digits}f} ± {found.interval:.{digits}f})"


def verdict(baseline: str, system: str, found: "Comparison", digits: int) -> str:
    """Write a sentence on which of two systems is better, and whether the difference is statistically significant."""
    from heedful.evaluate.significance import SIGNIFICANT

    if found.baseline.value == found.system.value:
        return f"{found.name}: {system} and {baseline} are equal"
    better, worse = (system, baseline) if found.is_better else (baseline, system)
    difference = f"{abs(found.system.value - found.baseline.value):.{digits}f}"
    if found.is_significant:
        chance = f"is more than chance (p = {found.p_value:.4f} < {SIGNIFICANT})"
    else:
        chance = f"may be chance (p = {found.p_value:.4f}, not below {SIGNIFICANT})"
    return f"{found.name}: {better} is better than {worse} by {difference}, which {chance}"
