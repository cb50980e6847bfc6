"""A run that is interrupted and goes on, held to the last bit against one that is not."""

from pathlib import Path

import pytest

from heedful.config.schema import Recipe
from heedful.training import loop
from interrupted import stop_after, train
from reversal import fingerprint


def check_resumes_exactly(settings: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch, update: int = 5) -> None:
    """Train a recipe to its end, and again with a SIGTERM during an update: weights and log are the same bytes."""
    last = settings.train.max_updates
    assert train(settings, folder / "whole") == loop.Outcome(last, 0)
    with monkeypatch.context() as patch:
        stop_after(update, patch)
        assert train(settings, folder / "parts") == loop.Outcome(update, 143)
    assert train(settings, folder / "parts") == loop.Outcome(last, 0)
    assert fingerprint(folder / "parts") == fingerprint(folder / "whole")
