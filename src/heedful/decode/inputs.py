"""Inputs of predictors: one, which has one answer, is told from an iterable of several, which has a list of answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import Generic, TypeVar

from heedful.errors import InputError

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class InputKind(Generic[T]):
    """Kind of input that a predictor takes, such as texts: how one is told from several, and how it is read.

    Attributes:
        noun: what one input is called in messages, such as "text".
        types: the Python types of one input; anything else is an iterable of several.
        read: converts an input to the form that the predictor computes with, or raises an InputError.
        remedy: what to give, for messages, such as "a string".
    """

    noun: str
    types: tuple[type, ...]
    read: Callable[[object], T]
    remedy: str

    def one_or_all(self, answers: Callable[[Iterator[T]], Iterator[A]], given: object) -> A | list[A]:
        """Answer one input by one result, and an iterable of inputs by a list of results in order.

        Args:
            answers: computes the results of any number of inputs, one after another.
            given: an input or an iterable of inputs.

        Raises:
            InputError: `given` is neither, or an input cannot be read.
        """
        if isinstance(given, self.types):
            [found] = answers(iter([self.read(given)]))
            return found
        return list(answers(self.each(given)))

    def each(self, given: object) -> Iterator[T]:
        """Iterate over the inputs of an iterable and read each; an error names the number of the input, from 1.

        Raises:
            InputError: `given` is one input, or no iterable of inputs.
        """
        if isinstance(given, self.types):
            raise InputError(
                f"{described(given)} is one {self.noun}, where several are read one after another; put it in a list"
            )
        if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping) or getattr(given, "ndim", 1) == 0:
            raise InputError(
                f"{described(given)} is no {self.noun}, nor a list of several; give {self.remedy}, or several in a list"
            )
        return self._numbered(given)

    def _numbered(self, inputs: Iterable[object]) -> Iterator[T]:
        for number, one in enumerate(inputs, start=1):
            try:
                found = self.read(one)
            except InputError as error:
                raise InputError(f"{self.noun} {number}: {error}") from error
            yield found


def as_text(given: object) -> str:
    """Return an input unchanged after checking that it is a string.

    Raises:
        InputError: the input is not a string.
    """
    if not isinstance(given, str):
        raise InputError(f"{described(given)} is no text; give a string")
    return given


TEXTS = InputKind("text", (str,), as_text, "a string")


def described(value: object) -> str:
    """Format a value and its type for an error message."""
    return "None" if value is None else f"{shortened(value)} ({type(value).__name__})"
