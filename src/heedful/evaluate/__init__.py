"""Evaluation metrics, one module per kind of output; the metrics of translations can be imported from here."""

from heedful.evaluate.significance import Comparison, Resampled
from heedful.evaluate.translation import (
    LOWER_CASED,
    METRICS,
    TOKENIZERS,
    Score,
    Scoring,
    check_aligned,
    is_lower_cased,
    paired_bootstrap,
    score,
)

__all__ = [
    "LOWER_CASED",
    "METRICS",
    "TOKENIZERS",
    "Comparison",
    "Resampled",
    "Score",
    "Scoring",
    "check_aligned",
    "is_lower_cased",
    "paired_bootstrap",
    "score",
]
