"""Length penalties. A hypothesis scores log P(y|x) / penalty(|y|), where |y| counts <eos>.

Without one a search prefers short outputs: every further token makes the probability smaller.
"""

from collections.abc import Callable


def gnmt(length: int, alpha: float) -> float:
    """((5 + |y|) / 6)^alpha (Wu et al. 2016, formula 14)."""
    return ((5 + length) / 6) ** alpha


def average(length: int, alpha: float) -> float:
    """|y|^alpha: 0 compares total log-probabilities, 1 their mean per token."""
    return length**alpha


PENALTIES: dict[str, Callable[[int, float], float]] = {"gnmt": gnmt, "average": average}
