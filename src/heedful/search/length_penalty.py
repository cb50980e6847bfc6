"""Length penalties, which make the scores of outputs of different lengths comparable."""

from collections.abc import Callable

from heedful.config.schema import DecodeConfig

# Length penalties by their names in a recipe: functions of the length |y| of an output, <eos> included, and of alpha.
LENGTH_PENALTIES: dict[str, Callable[[int, float], float]] = {
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, formula 14
    "average": lambda length, alpha: length**alpha,  # with alpha = 0 the score is log P, with 1 its mean per token
    "average_text": lambda length, alpha: max(1, length - 1) ** alpha,  # Whisper's: <eos> does not count
}


def length_penalty(length: int, config: DecodeConfig) -> float:
    """Return the divisor of the log-probability of an output with `length` tokens, <eos> included."""
    return LENGTH_PENALTIES[config.penalty](length, config.alpha)
