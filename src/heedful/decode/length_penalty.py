"""Length penalties of beam search: a hypothesis has the score log P(y|x) / length penalty(|y|), where |y| counts <eos>.

Without a length penalty a search prefers short outputs: every further token makes the probability smaller.
"""

from collections.abc import Callable


def gnmt(length: int, alpha: float) -> float:
    """Length penalty of Google's GNMT: ((5 + |y|) / 6)^alpha (Wu et al. 2016, formula 14)."""
    return ((5 + length) / 6) ** alpha


def average(length: int, alpha: float) -> float:
    """Length penalty |y|^alpha: alpha = 0 compares total log-probabilities, 1 their mean per token."""
    return length**alpha


def average_text(length: int, alpha: float) -> float:
    """Length penalty (|y| - 1)^alpha, the tokens without <eos>: Whisper's, for outputs of one or more tokens."""
    return max(1, length - 1) ** alpha


PENALTIES: dict[str, Callable[[int, float], float]] = {"gnmt": gnmt, "average": average, "average_text": average_text}
