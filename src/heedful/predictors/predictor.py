"""Base class of all predictors (translator, generator, classifier, ...): inputs, device, precision, calls."""

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
    """Kind of input that a predictor takes, such as texts: it distinguishes one input from several, and reads each.

    Attributes:
        noun: the name of one input in messages, such as "text".
        types: the Python types of one input; anything else is an iterable of several.
        read: converts an input to the form that the predictor works with, or raises an InputError.
        remedy: the expected input, for messages, such as "a string".
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
        """Iterate over the inputs in an iterable, and read each; an error gives the number of the input, from 1."""
        if isinstance(inputs, self.types):
            raise InputError(
                f"{described(inputs)} is a single {self.noun}, but several are expected here; put it in a list"
            )
        # Bytes and mappings are iterable as well, but their items, integers and keys, are not meant as inputs.
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

Done = Callable[[int], object]  # called with the number of texts just finished, for a progress report


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

    A subclass defines `predict`, usually with a second name from its field, such as `translate`, and a method that
    reads any number of texts in bounded memory, such as `translate_lines`. A predictor can also be called like a
    function.

    Attributes:
        model: the torch module.
        recipe: the recipe that the model was trained with; None for a model that was not loaded from a folder.
        tokenizer: the tokenizer of the text that the model reads or, if it reads none, generates; None for a model
            without text.
        config: the settings for generating text, [decode] or [generate]; None for a model that generates none.
        reader: runs the model on texts or files in batches; None for some predictors, such as a generator.
        reads_files: True for a predictor of images, audio or video, whose `reader` decodes them.
    """

    recipe: Recipe | None = None
    tokenizer: Any = None
    config: Any = None
    reader: Any = None
    reads_files: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A call looks up `__call__` in the class; the inherited one is the `predict` of the base class.
        cls.__call__ = cls.predict  # the `predict` of the subclass

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
            texts: a string, which gives one answer; or an iterable of strings, which gives a list of answers.
        """

    __call__ = predict  # for type checkers, see `__init_subclass__`

    @cached_property
    def tokenizers(self) -> TokenizerPair:
        """Tokenizers of the text that the model reads and generates: the same one twice, or none without text."""
        return NoTokenizers() if self.tokenizer is None else TokenizerPair(self.tokenizer, self.tokenizer)

    def _configured(self: P, options: Mapping[str, Any]) -> P:
        """Copy the predictor, sharing its model, with different values for some of the settings in `config`."""
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
        """Prepare a text, a pair or a file as the model reads it, for the inspector; None if it cannot be inspected."""
        del value, second
        return None

    def ranked_options(self, value: Any, second: str | None) -> list[Answer]:
        """Return the possible outputs for a text, a pair or a file, for the inspector; [] if the model ranks none."""
        del value, second
        return []

    def unknown(self, text: str) -> list[str]:
        """List the parts of a text that no token of the vocabulary covers: the model reads <unk> for them."""
        return self.tokenizers.source.unknown(text)


AnyPredictor = Predictor["Model", object]  # the predictor of a model whose task is not known
