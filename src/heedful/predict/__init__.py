"""What trained models say of texts: one file for each kind of answer."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

from heedful.predict.reader import Text


@runtime_checkable
class Predictor(Protocol):
    """A model that says something of each text."""

    def predict(self, texts: Iterable[Text], /) -> Iterator[Any]:
        """Answers in the order of the texts: dataclasses whose `str` is a line."""
        ...
