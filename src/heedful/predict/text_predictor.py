"""Base class of predictors that give one answer for each text or pair of texts."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, TypeVar, overload

from heedful.config.schema import DataConfig
from heedful.decode.inputs import InputKind, as_text, described
from heedful.decode.predictor import Predictor
from heedful.errors import InputError
from heedful.models import Model
from heedful.predict.batching import BatchedModel, Text
from heedful.text.tokenizer import Tokenizer

M_co = TypeVar("M_co", bound=Model, covariant=True)
A_co = TypeVar("A_co", covariant=True)
Input = str | tuple[str, str | None] | list[str]  # a text, a pair of texts, or for taggers a list of words


class TextPredictor(Predictor[M_co, A_co]):
    """Base class of predictors that give one answer for each text or pair of texts (classes, scores, tags, answers).

    Answers are dataclasses whose `str` is one line, as `heedful predict` writes it.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        data: its settings for data; the model reads at most `data.max_length` tokens.

    Attributes:
        inputs: how an input is read.
        columns: the names of the columns that `heedful predict` writes for an answer to a table.
    """

    tokenizer: Tokenizer
    inputs: ClassVar[InputKind[Text]]
    columns: tuple[str, ...] = ()

    def __init__(self, model: M_co, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.reader = BatchedModel(model, tokenizer, data.max_length)

    @overload
    def predict(self, texts: str | Text) -> A_co: ...
    @overload
    def predict(self, texts: Iterable[Input]) -> list[A_co]: ...
    def predict(self, texts: object) -> A_co | list[A_co]:
        """Predict the answer to a text, or the answers to several texts in their order.

        Args:
            texts: a string or a `Text`, which has one answer; or an iterable of strings and pairs, which has a list of
                answers. A pair is a `Text(first, second)` or, inside an iterable, a tuple.

        Raises:
            InputError: an input is not a text, or of a kind that the model does not read; or `texts` is a tuple of two
                strings, which may be a pair or two texts.
        """
        return self.inputs.one_or_all(self.answers, texts)

    __call__ = predict

    def predict_lines(self, texts: Iterable[Input]) -> Iterator[A_co]:
        """Predict the answer to each of any number of texts, in their order and in bounded memory.

        Raises:
            InputError: under the same conditions as `predict`.
        """
        return self.answers(self.inputs.each(texts))

    def check(self, text: Text) -> None:
        """Check that the model reads a text or a pair of texts; a predictor that reads only some overrides this.

        Raises:
            InputError: it does not, as only those predictors say.
        """

    def line(self, answer: object) -> str:
        """Write an answer as a line, as `heedful predict` prints it."""
        return str(answer)

    def cells(self, answer: object) -> dict[str, object]:
        """Return what stands in each of the `columns` for an answer: here its attributes of the same names."""
        return {name: getattr(answer, name) for name in self.columns}

    @abstractmethod
    def answers(self, texts: Iterator[Text]) -> Iterator[A_co]:
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


class TextsAndPairs(InputKind[Text]):
    """Texts and pairs of texts; two texts in a tuple, which may be either, are refused outside a list."""

    def each(self, given: object) -> Iterator[Text]:
        """Iterate over the inputs of an iterable and read each.

        Raises:
            InputError: as for other kinds; or `given` is a tuple of two texts.
        """
        if isinstance(given, tuple) and len(given) == 2 and all(isinstance(one, str) for one in given):
            raise InputError(
                f"{described(given)} may be a pair or two texts; give Text(first, second) or [(first, second)] for a "
                "pair, or [first, second] for two texts"
            )
        return super().each(given)


TextPredictor.inputs = PAIRS = TextsAndPairs("text", (str, Text), as_pair, "a string")
