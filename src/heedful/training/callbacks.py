"""Callbacks: objects whose methods are called during training, for plots, logs and early stopping.

A callback has one or more of the methods of `Callback`, and need not subclass it. If it raises an exception, the
run is saved and the exception reaches the caller of `heedful.train`; the same call resumes the run. With several
processes, rank zero calls its callbacks, and the others wait.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.architectures import Model
from heedful.errors import InputError


@dataclass(frozen=True)
class TrainingEvent:
    """Argument of a callback's methods.

    Attributes:
        update: The number of updates so far.
        scores: After an update, its "loss" and any scores that follow from this, such as the perplexity, and its
            learning rate "lr" and gradient "norm"; after a validation, its scores; at the end, the scores of the final
            model; empty if the run was interrupted.
        model: The model with its current weights; at the end, `heedful.load(event.folder)` gives the final one.
            If a callback changes weights, training continues with the changed ones. Sampling random numbers and
            switching to evaluation mode have no effect on training.
        folder: The run folder.
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
    """Error raised when a callback fails; `error` is the callback's own exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Callbacks:
    """The callbacks of a run, called in order."""

    def __init__(self, callbacks: Iterable[object] = ()) -> None:
        if not isinstance(callbacks, Iterable):
            raise InputError(f"callbacks must be a list, such as [{type(callbacks).__name__}()], not {callbacks!r}")
        self.callbacks = tuple(callbacks)
        for callback in self.callbacks:
            if isinstance(callback, type):
                name = callback.__name__
                raise InputError(f"{callback!r} is a class, not a callback; create an instance: {name}()")
            # A misspelt method, such as `on_updates`, would never be called.
            unknown = [name for name in dir(callback) if name.startswith("on_") and name not in METHODS]
            if unknown or not any(callable(getattr(callback, name, None)) for name in METHODS):
                kind = type(callback).__name__
                problem = f"has {', '.join(unknown)}" if unknown else f"is a {kind} with none of these methods"
                methods = ", ".join(METHODS)
                raise InputError(f"a callback must have at least one of the methods {methods}; {callback!r} {problem}")

    def call(self, method: str, event: Callable[[], TrainingEvent]) -> None:
        """Call a method of each callback that has it; the event is built only if any callback does."""
        methods = [getattr(callback, method) for callback in self.callbacks if hasattr(callback, method)]
        argument = event() if methods else None
        for function in methods:
            try:
                function(argument)
            except Exception as error:
                raise CallbackError(error) from error


NO_CALLBACKS = Callbacks()
