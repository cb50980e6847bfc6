"""Base classes of predictors that read texts or pairs of texts."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar, overload

from torch import nn

from heedful.config.schema import DataConfig
from heedful.decode.predictor import BasePredictor, as_text, described, one_or_all, several
from heedful.errors import InputError
from heedful.predict.batching import BatchedModel, Text
from heedful.text.tokenizer import Tokenizer

M = TypeVar("M", bound=nn.Module)
A = TypeVar("A")


class TextReader(BasePredictor[M]):
    """Base class of predictors that read texts, each as at most `data.max_length` tokens."""

    def __init__(self, model: M, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model)
        self.reader = BatchedModel(model, tokenizer, data.max_length)


class TextPredictor(TextReader[M], ABC, Generic[M, A]):
    """Base class of predictors that give one answer for each text or pair of texts (classes, scores, tags, answers)."""

    @overload
    def predict(self, texts: str | Text) -> A: ...
    @overload
    def predict(self, texts: Iterable[str | tuple[str, str | None]]) -> list[A]: ...
    def predict(self, texts: Any) -> A | list[A]:
        """Predict the answer to a text, or the answers to several texts in their order.

        Args:
            texts: a string or a `Text`, which has one answer; or an iterable of strings and pairs, which has a list of
                answers. A pair is a `Text(first, second)` or, inside an iterable, a tuple.

        Raises:
            InputError: an input is not a text, or of a kind that the model does not read.
        """
        return one_or_all(lambda each: list(self.predict_lines(each)), texts, as_pair, (str, Text))

    def predict_lines(self, texts: Iterable[str | tuple[str, str | None]]) -> Iterator[A]:
        """Predict the answer to each of any number of texts, in their order and in bounded memory.

        Raises:
            InputError: under the same conditions as `predict`.
        """
        return self.answers(several(texts, as_pair))

    @abstractmethod
    def answers(self, texts: Iterator[Text]) -> Iterator[A]:
        """Predict the answer to each text, in order; implemented by each kind of predictor.

        Raises:
            InputError: a text is of a kind that the model does not read.
        """


def as_pair(given: object) -> Text:
    """Convert an input, a string or a tuple of two, to a text or a pair of texts.

    Raises:
        InputError: the input is neither.
    """
    if isinstance(given, tuple) and len(given) == 2:
        first, second = given
        return Text(as_text(first), None if second is None else as_text(second))
    if not isinstance(given, str):
        raise InputError(f"{described(given)} is no text; give a string, or for a pair Text(first, second)")
    return Text(given)
