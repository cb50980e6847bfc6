"""How good outputs are: one file a kind of score. Those of translations can be imported from here."""

from heedful.evaluate.resampling import Comparison, Resampled
from heedful.evaluate.translation import (
    METRICS,
    TOKENIZERS,
    Score,
    Scoring,
    check_aligned,
    paired_bootstrap,
    score,
)

__all__ = [
    "METRICS",
    "TOKENIZERS",
    "Comparison",
    "Resampled",
    "Score",
    "Scoring",
    "check_aligned",
    "paired_bootstrap",
    "score",
]
