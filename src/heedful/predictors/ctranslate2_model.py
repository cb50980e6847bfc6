"""Base classes of the predictors that run on CTranslate2, and of their models.

`heedful.convert.engine` loads the predictors.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from heedful.config.schema import Recipe
from heedful.errors import InputError, RunError
from heedful.machine.cores import usable_cores
from heedful.registry import ENGINE_PREDICTORS
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    import torch

COMPUTE_TYPES = {"float32": "float32", "int8": "int8_float32"}  # by heedful's precision names
MAX_FEW_ROWS = 2  # run as one batch; more rows are divided among the cores, which takes less time in total
POSITIONS = 2048  # of a sinusoid table, which CTranslate2 does not extend

Rows = Sequence[list[int]]
T = TypeVar("T")


def import_ctranslate2() -> Any:
    """Import CTranslate2 without torch, which its converters import if possible, but do not need.

    None in `sys.modules` makes an import fail.
    """
    # Packages that are already imported are not hidden: they would be missing from `sys.modules` afterwards.
    hidden = {"torch", "transformers", "huggingface_hub"} - sys.modules.keys()
    for name in hidden:
        sys.modules[name] = cast("Any", None)
    try:
        return import_module("ctranslate2")
    finally:
        for name in hidden:
            del sys.modules[name]


def as_tokens(rows: Iterable[Sequence[int]]) -> list[list[str]]:
    """Convert rows of token ids to the tokens of a converted model, which are the ids as strings."""
    return [list(map(str, row)) for row in rows]


class CTranslate2Model:
    """Model in CTranslate2's format. Unless it is a speech model, its vocabulary consists of token ids.

    Args:
        folder: The folder of the converted model.
        origin: The model folder from which it was converted.
        recipe: The recipe of the model.
        precision: A key of `COMPUTE_TYPES`.
        reference: Loads the torch predictor, for the few results that CTranslate2 cannot compute.

    Attributes:
        engine: The name in `ctranslate2` of the class that opens the folder.
    """

    engine: ClassVar[str]

    def __init__(
        self, folder: Path, origin: Path, recipe: Recipe, precision: str, reference: Callable[[], Any]
    ) -> None:
        self.folder = folder
        self.origin = origin
        self.recipe = recipe
        self.precision = precision
        self.reference = reference
        self.engines: dict[bool, Any] = {}
        self.engine_for([[]])  # so that a damaged folder raises an error now

    def engine_for(self, rows: Sequence[Any]) -> Any:
        """Return the engine for many rows, which runs a batch on each core, or the one for few rows, with one batch."""
        # Two engines in a process wait for each other's threads, so the one for many rows, once open, serves all calls.
        many = len(rows) > MAX_FEW_ROWS or True in self.engines
        if many not in self.engines:
            cores = usable_cores()
            alone = 1 if self.precision == "int8" else cores  # in int8, two threads take ten times as long for a row
            try:
                # Many rows: a batch on each core. Few rows: all cores for one batch or, in int8, one core.
                self.engines[many] = attrgetter(self.engine)(import_ctranslate2())(
                    str(self.folder),
                    compute_type=COMPUTE_TYPES[self.precision],
                    inter_threads=cores if many else 1,
                    intra_threads=1 if many else alone,
                )
            except RuntimeError as error:
                raise InputError(f"{self.folder}: CTranslate2 cannot open it ({error}); remove this folder") from error
        return self.engines[many]

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Turn an error from CTranslate2 into a RunError that names the model folder."""
        try:
            yield
        except RuntimeError as error:
            raise RunError(f"{self.folder}: CTranslate2 cannot run this model: {error}") from error

    def each(self, promises: Iterable[Any]) -> Iterator[Any]:
        """Yield the results of CTranslate2's promises, in order, waiting for each."""
        for promise in promises:
            # The block does not include the yield, because an error in the caller does not come from CTranslate2.
            with self.computing():
                result = promise.result()
            yield result


class ScoredOutputs(Generic[T]):
    """Outputs of one batch, whose token scores are computed together when the scores of any output are first read.

    Args:
        score: Computes the log-probabilities of the tokens of several outputs.
    """

    def __init__(self, score: Callable[[list[T]], list[list[float]]]) -> None:
        self.score = score
        self.outputs: list[T] = []
        self.scores: list[list[float]] = []  # token scores of the first outputs, as far as they are computed

    def add(self, output: T, length: int) -> "LazyScores":
        """Add an output, and return the scores of its first `length` tokens, which are computed when first read."""
        self.outputs.append(output)
        return LazyScores(partial(self.scores_of, len(self.outputs) - 1), range(length))

    def scores_of(self, number: int) -> list[float]:
        """Return the log-probabilities of the tokens of an output."""
        if number >= len(self.scores):
            # Score all outputs added so far, since a batch takes less time than single rows.
            self.scores += self.score(self.outputs[len(self.scores) :])
        return self.scores[number]


class LazyScores(Sequence[float]):
    """Sequence of log-probabilities that are computed only when one of them is read.

    `compute` is called at every read, so it should cache its result.
    """

    def __init__(self, compute: Callable[[], Sequence[float]], indices: range) -> None:
        self.compute = compute
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return LazyScores(self.compute, self.indices[index])
        return self.compute()[self.indices[index]]

    def __repr__(self) -> str:
        return repr(list(self))


def refuse(misfits: Sequence[str]) -> None:
    """Raise an InputError if there are settings with which CTranslate2's results would differ from torch's."""
    if misfits:
        raise InputError("\n  ".join(["CTranslate2 does not support these settings; use the engine torch:", *misfits]))


class CTranslate2Predictor(ABC):
    """Base class of predictors that run on CTranslate2; each also extends the corresponding torch predictor.

    Attributes:
        model_class: The class of the model.
        reference_class: The class of the corresponding torch predictor.
    """

    model_class: ClassVar[type[CTranslate2Model]]
    reference_class: ClassVar[type]
    model: Any

    @abstractmethod
    def __init__(self, model: Any, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> None:
        """Create a predictor; `options` are settings that override those of the model's recipe."""

    @classmethod
    def task_misfits(cls, recipe: Recipe) -> list[str]:
        """List the problems with a model's task: `ENGINE_PREDICTORS` must map it to this predictor."""
        name = f"{cls.__module__}:{cls.__name__}"
        tasks = [task for task, each in ENGINE_PREDICTORS.places.items() if each == name]
        return [] if recipe.task in tasks else [f'task = "{recipe.task}": must be one of {", ".join(tasks)}']

    @staticmethod
    @abstractmethod
    def misfits(recipe: Recipe, tokenizers: TokenizerPair, options: Mapping[str, Any] | None) -> list[str]:
        """List the settings with which CTranslate2's results would differ from torch's, each with the supported values.

        Args:
            recipe: The recipe of the model.
            tokenizers: Its tokenizers.
            options: Settings that override those of the recipe; None if they are passed to later calls, which check
                them.
        """

    @property
    def device(self) -> "torch.device":
        import torch

        return torch.device("cpu")

    @property
    def precision(self) -> str:
        return self.model.precision

    def to(self, device: "str | torch.device") -> Any:
        raise InputError(f'this model runs on CTranslate2; load it with engine="torch" for device {device}')

    def __repr__(self) -> str:
        return f"{type(self).__name__}(task={self.model.recipe.task!r}, precision={self.precision!r})"
