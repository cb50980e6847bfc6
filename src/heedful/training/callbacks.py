"""Callbacks: objects whose methods are called during training, for plots, logs and early stopping.

A callback has one or more of the methods of `Callback`, and need not subclass it. If it raises an exception, the
run is saved and the exception reaches the caller of `heedful.train`; the same call resumes the run. With several
processes, only rank zero calls callbacks, and the others wait for it.
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
        scores: After an update: its "loss", the scores derived from it, such as "perplexity", the learning rate "lr"
            and the gradient "norm". After a validation: its scores. At the end: the scores of the final model, or {}
            if the run was interrupted or has no validation set.
        model: The model with its current weights. At the end, `heedful.load(event.folder)` loads the final model. If a
            callback changes weights, training continues with the changed ones. Sampling random numbers and switching
            to evaluation mode have no effect on training.
        folder: The run folder.
        finished: True in `on_end` if the run is complete; False if it was interrupted, and in the other methods.
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
        """Called once, when the run ends or is interrupted, unless a callback has failed."""


METHODS = ("on_update", "on_validation", "on_end")


class CallbackError(Exception):
    """Error raised when a callback fails.

    `error` is the callback's own exception or, in processes other than rank zero, a RunError that describes it.
    """

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
        """Call a method of each callback that has it; `event` builds its argument, and is called only if needed."""
        attributes = [getattr(callback, method, None) for callback in self.callbacks]
        methods = [attribute for attribute in attributes if callable(attribute)]
        argument = event() if methods else None
        for function in methods:
            try:
                function(argument)
            except Exception as error:
                raise CallbackError(error) from error


NO_CALLBACKS = Callbacks()
