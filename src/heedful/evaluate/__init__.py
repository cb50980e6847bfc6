"""Evaluation metrics, one module per kind of output; the metrics of translations can be imported from here."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
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

_MODULES = {
    "heedful.evaluate.significance": (
        "Comparison",
        "Resampled",
    ),
    "heedful.evaluate.translation": (
        "LOWER_CASED",
        "METRICS",
        "TOKENIZERS",
        "Score",
        "Scoring",
        "check_aligned",
        "is_lower_cased",
        "paired_bootstrap",
        "score",
    ),
}

__getattr__ = public_names(__name__, _MODULES)
