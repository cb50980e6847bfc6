"""Training in a test, and stopping it."""

import io
import os
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from commands import FORKS
from rich.console import Console

from heedful.config.schema import Recipe
from heedful.training import loop
from heedful.training.trainer import Trainer


def train(settings: Recipe, folder: Path) -> loop.Outcome:
    return loop.train(settings, folder, Console(stderr=True, quiet=True))


def train_aloud(settings: Recipe, folder: Path) -> tuple[loop.Outcome, str]:
    """Train, and return what was shown as well."""
    screen = io.StringIO()
    outcome = loop.train(settings, folder, Console(file=screen, width=500))
    return outcome, screen.getvalue()


def begin(settings: Recipe, folder: Path) -> BaseProcess:
    """Begin a training in another process."""
    begun = FORKS.Process(target=train, args=(settings, folder), daemon=True)
    begun.start()
    return begun


def stop_after(update: int, monkeypatch: pytest.MonkeyPatch, number: signal.Signals = signal.SIGTERM) -> None:
    """Let the next training be interrupted by a signal during its update `update`."""
    take = Trainer.update

    def take_and_stop(self):
        if self.state.update + 1 == update:
            os.kill(os.getpid(), number)
        take(self)

    monkeypatch.setattr(Trainer, "update", take_and_stop)
