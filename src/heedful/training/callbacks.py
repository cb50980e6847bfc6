"""Callbacks: objects of a program whose methods are called during training, for plots, logs and decisions of its own.

A callback has one or several of the methods of `Callback`; it may extend the class, and need not. Its exceptions save
the run and reach the caller of `heedful.train`, so that the same call resumes. Of several processes the first one calls
its callbacks, and the others wait.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.architectures import Model
from heedful.errors import InputError


@dataclass(frozen=True)
class TrainingEvent:
    """What a callback learns.

    Attributes:
        update: the number of updates so far.
        scores: after an update its "loss", learning rate "lr" and gradient "norm"; after a validation its scores; at
            the end the scores of the final model, or nothing if the run was interrupted.
        model: the model with its current weights; at the end, `heedful.load(event.folder)` gives the final one. What a
            callback does to the weights, the training keeps; random numbers that it draws, and whether it switches
            dropout off, change nothing.
        folder: the folder of the run.
        finished: True at the end of a run that is complete.
    """

    update: int
    scores: dict[str, float]
    model: Model
    folder: Path
    finished: bool = False


class Callback:
    """Base class of callbacks, whose methods do nothing."""

    def on_update(self, event: TrainingEvent) -> None:
        """Called after each update of the weights."""

    def on_validation(self, event: TrainingEvent) -> None:
        """Called after each validation."""

    def on_end(self, event: TrainingEvent) -> None:
        """Called once when the run has ended or was interrupted, unless a callback has failed."""


METHODS = ("on_update", "on_validation", "on_end")


class CallbackError(Exception):
    """A callback has raised `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Callbacks:
    """The callbacks of a run, called in their order."""

    def __init__(self, callbacks: Iterable[object] = ()) -> None:
        if not isinstance(callbacks, Iterable):
            raise InputError(f"callbacks is a list, such as [{type(callbacks).__name__}()], not {callbacks!r} itself")
        self.callbacks = tuple(callbacks)
        for callback in self.callbacks:
            check_callback(callback)

    def call(self, method: str, event: Callable[[], TrainingEvent]) -> None:
        """Call a method of each callback that has it; the event is made if there is one."""
        methods = [getattr(callback, method) for callback in self.callbacks if hasattr(callback, method)]
        if not methods:
            return
        argument = event()
        for function in methods:
            try:
                function(argument)
            except Exception as error:
                raise CallbackError(error) from error


NO_CALLBACKS = Callbacks()


def check_callback(callback: object) -> None:
    if isinstance(callback, type):
        raise InputError(f"{callback!r} is a class, not a callback; make an object of it: {callback.__name__}()")
    strange = [name for name in dir(callback) if name.startswith("on_") and name not in METHODS]
    if strange or not any(callable(getattr(callback, name, None)) for name in METHODS):
        fault = f"has {', '.join(strange)}" if strange else f"is a {type(callback).__name__} without these methods"
        raise InputError(f"a callback has the methods {', '.join(METHODS)}, one or several; {callback!r} {fault}")
