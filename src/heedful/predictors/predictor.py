"""Base class of all predictors (translator, generator, classifier, ...), and the kinds of input that they accept."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, overload

from heedful.config.options import TABLES, with_options
from heedful.config.schema import DecodeConfig, Recipe
from heedful.errors import InputError
from heedful.predictors.outputs import Answer
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair

if TYPE_CHECKING:  # a translator with another engine does not need torch
    import numpy as np
    import torch

    from heedful.architectures.model import Model

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class InputKind(Generic[T]):
    """Kind of input that a predictor accepts, such as texts. It separates one input from several, and converts each.

    Attributes:
        noun: The name of one input in messages, such as "text".
        types: The Python types of a single input; a value of another type is treated as an iterable of inputs.
        read: Converts an input to the form that the predictor works with, or raises an InputError.
        remedy: The expected input, for messages, such as "a string".
    """

    noun: str
    types: tuple[type, ...]
    read: Callable[[object], T]
    remedy: str

    def one_or_all(self, answers: Callable[[Iterator[T]], Iterator[A]], inputs: object) -> A | list[A]:
        """Return one result for a single input, and a list of results, in order, for an iterable of inputs."""
        if isinstance(inputs, self.types):
            [answer] = answers(iter([self.read(inputs)]))
            return answer
        return list(answers(self.each(inputs)))

    def each(self, inputs: object) -> Iterator[T]:
        """Return an iterator that reads each input of an iterable; its errors give the number of the input, from 1."""
        if isinstance(inputs, self.types):
            raise InputError(
                f"{described(inputs)} is a single {self.noun}, but several are expected here; put it in a list"
            )
        # Bytes, mappings and arrays without dimensions also have `__iter__`, but no items that could be inputs.
        if not isinstance(inputs, Iterable) or isinstance(inputs, bytes | Mapping) or getattr(inputs, "ndim", 1) == 0:
            raise InputError(
                f"{described(inputs)} is neither {with_article(self.noun)} nor a list; give {self.remedy}, or a list "
                "for several inputs"
            )

        # A separate generator, so that the checks above run at the call, not when the first result is read.
        def numbered() -> Iterator[T]:
            for number, one in enumerate(inputs, start=1):
                try:
                    converted = self.read(one)
                except InputError as error:
                    raise InputError(f"{self.noun} {number}: {error}") from error
                yield converted

        return numbered()


def as_text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{described(value)} is not a text; give a string")
    return value


TEXTS = InputKind("text", (str,), as_text, "a string")


def described(value: object) -> str:
    """Format a value and its type for an error message."""
    return "None" if value is None else f"{shortened(value)} ({type(value).__name__})"


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


M_co = TypeVar("M_co", bound="Model", covariant=True)
A_co = TypeVar("A_co", covariant=True)
P = TypeVar("P", bound="Predictor[Model, object]")

Done = Callable[[int], object]  # called with the number of inputs (or seconds of audio) just finished


def check_one_text(options: Mapping[str, object], config: DecodeConfig, remedy: str) -> None:
    """Reject `n_best` above 1 in the options of a call that returns one text for each input."""
    if "n_best" in options and config.n_best > 1:
        raise InputError(f"n_best = {config.n_best}: {remedy}")


class ModelInputs(NamedTuple):
    """Arguments of a model for one input without padding, and what the positions of its first stack represent."""

    arguments: "Sequence[torch.Tensor]"
    tokens: "list[int] | np.ndarray"  # token ids, or a decoded file


class Predictor(ABC, Generic[M_co, A_co]):
    """Base class of predictors: a trained model with its tokenizer, ready for use; `heedful.load` returns one.

    A subclass defines `predict`, usually with an alias that names what it does, such as `translate`, and a method that
    reads any number of texts in bounded memory, such as `translate_lines`. A predictor can also be called like a
    function.

    Attributes:
        model: The torch module.
        recipe: The recipe that the model was trained with; None for a model that was not loaded from a folder.
        tokenizer: The tokenizer of the text that the model reads or, if it reads none, generates; None for a model
            without text.
        config: The settings for generating text, [decode] or [generate]; None for a model that generates none.
        reader: Runs the model on texts or files in batches; None for some predictors, such as a generator.
        reads_files: True for a predictor of images, audio or video, whose `reader` decodes them.
    """

    recipe: Recipe | None = None
    tokenizer: Any = None
    config: Any = None
    reader: Any = None
    reads_files: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The inherited `__call__` would run the abstract `predict` of the base class.
        cls.__call__ = cls.predict

    def __init__(self, model: M_co) -> None:
        self.model = model

    @overload
    def predict(self, texts: str, /) -> A_co: ...
    @overload
    def predict(self, texts: Iterable[str], /) -> Collection[A_co]: ...
    @abstractmethod
    def predict(self, texts: str | Iterable[str], /) -> A_co | Collection[A_co]:
        """Compute the answer to a text, or the answers to several texts, in order.

        Args:
            texts: A string, which gives one answer; or an iterable of strings, which gives a list of answers.
        """

    __call__ = predict  # for type checkers, see `__init_subclass__`

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Tokenizers of the input and the output text: by default the same one; none for a model without text."""
        return NoTokenizers() if self.tokenizer is None else TokenizerPair(self.tokenizer, self.tokenizer)

    def _configured(self: P, options: Mapping[str, Any]) -> P:
        """Return a copy that shares the model, with different values for some of the settings in `config`."""
        changed = copy(self)
        changed.config = with_options(self.config, options)
        changed.recipe = self.recipe and replace(self.recipe, **{TABLES[type(self.config)]: changed.config})
        return changed

    @property
    def device(self) -> "torch.device":
        return next(self.model.parameters()).device

    @property
    def precision(self) -> str:
        """Number format of the weights, such as "float32"."""
        return str(next(self.model.parameters()).dtype).removeprefix("torch.")

    def to(self: P, device: "str | torch.device") -> P:
        """Move the model to a device, such as "cpu" or "cuda:1", and return the predictor."""
        from heedful.machine.device import choose_device

        self.model.to(choose_device(device))
        return self

    def __repr__(self) -> str:
        facts = [] if self.recipe is None else [f"task={self.recipe.task!r}", f"family={self.recipe.model.family!r}"]
        facts += [f"parameters={sum(weight.numel() for weight in self.model.parameters()):_}"]
        facts += [f"precision={self.precision!r}", f"device={str(self.device)!r}"]
        return f"{type(self).__name__}({', '.join(facts)})"

    def model_inputs(self, value: Any, second: str | None) -> ModelInputs | None:
        """Return the model inputs for a text, a pair or a file; None if the inspector does not support this class."""
        del value, second
        return None

    def ranked_options(self, value: Any, second: str | None) -> list[Answer]:
        """Return the possible outputs for a text, a pair or a file, for the inspector; [] if the model ranks none."""
        del value, second
        return []

    def unknown(self, text: str) -> list[str]:
        """List the parts of a text that no token of the vocabulary covers, which the model reads as <unk>."""
        return self.tokenizers.source.unknown(text)


AnyPredictor = Predictor["Model", object]  # the predictor of a model whose task is not known
