"""Metrics, one module per kind of output. The translation metrics can be imported from here."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.metrics.bootstrap import Comparison, ScoreInterval
    from heedful.metrics.translation import (
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
    "Score",
    "ScoreInterval",
    "Scoring",
    "check_aligned",
    "is_lower_cased",
    "paired_bootstrap",
    "score",
]

_BOOTSTRAP = ("Comparison", "ScoreInterval")

__getattr__ = public_names(
    __name__,
    {
        "heedful.metrics.bootstrap": _BOOTSTRAP,
        "heedful.metrics.translation": [name for name in __all__ if name not in _BOOTSTRAP],
    },
)
