"""Predictors that give one answer for each text or text pair, computed in batches of similar length."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat, tee
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, overload

from heedful.config.schema import DataConfig
from heedful.errors import InputError
from heedful.predictors.outputs import Answer, Option
from heedful.predictors.predictor import Done, InputKind, ModelInputs, Predictor, as_text, described
from heedful.text.sequences import batches, is_truncated, pad, segments, sequence
from heedful.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # torch is imported with the model
    import torch
    from torch import Tensor, nn

    from heedful.architectures import Model

WINDOW = 1024  # texts read at a time: enough to make batches of similar length
FIRST_WINDOW = 64  # texts in the first window, so that progress shows soon
BATCH_TOKENS = 8192

LOG = logging.getLogger(__name__)

# Maps ids, padding mask and segments, each (B S), to one result for each row.
Apply = Callable[["Tensor", "Tensor", "Tensor"], "Tensor"]


class Text(NamedTuple):
    """Input of a text predictor: one text, or a text pair."""

    first: str
    second: str | None = None


class EncodedText(NamedTuple):
    """Token ids of a text or pair, as the model reads them."""

    ids: list[int]
    truncated: bool  # True if the end was cut off


class BatchedModel:
    """Model with its tokenizer, run on texts in batches. The result for a text never depends on the other texts.

    Args:
        model: The model, in training or evaluation mode.
        tokenizer: Its tokenizer.
        longest: The maximum number of tokens in a row, special tokens included; longer inputs are truncated.
    """

    def __init__(self, model: "nn.Module", tokenizer: Tokenizer, longest: int) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.longest = longest
        self.warned = False

    def read(self, texts: Iterable[Text]) -> "Iterator[Tensor]":
        """Run the model on texts; yield the result of each, on the CPU, in order."""
        return (result for (result,) in self.read_groups([self.encode(text)] for text in texts))

    def read_groups(self, groups: Iterable[Sequence[list[int]]]) -> "Iterator[list[Tensor]]":
        """Run the model on groups of rows, such as the windows of a long text; yield the results of each group."""
        groups = iter(groups)
        for size in chain([FIRST_WINDOW], repeat(WINDOW)):
            if not (window := list(islice(groups, size))):
                return
            # Rows of all groups share batches; the results are divided among the groups in order.
            results = iter(self.read_rows([row for group in window for row in group], self.model))
            yield from (list(islice(results, len(group))) for group in window)

    def read_with_rows(self, texts: Iterable[Text]) -> "Iterator[tuple[EncodedText, Tensor]]":
        """Run the model on texts; yield the token ids of each text and its result, in order."""
        rows, copies = tee(map(self.row, texts))
        results = self.read_groups([row.ids] for row in copies)
        return ((row, result) for row, (result,) in zip(rows, results, strict=True))

    def encode(self, text: Text) -> list[int]:
        """Encode a text or pair as the token ids that the model reads; warn the first time that one is truncated."""
        ids, truncated = self.row(text)
        if truncated and not self.warned:
            self.warned = True
            LOG.warning("texts are truncated to the %s tokens that the model reads: %r", self.longest, text.first[:40])
        return ids

    def row(self, text: Text) -> EncodedText:
        parts = [self.tokenizer.encode(part) for part in text if part is not None]
        ids = sequence(*parts, longest=self.longest)
        return EncodedText(ids, is_truncated(ids, *parts))

    def read_rows(self, rows: Sequence[list[int]], apply: Apply, done: Done = lambda _: None) -> "list[Tensor]":
        """Run the model on rows of token ids, in batches.

        If `apply` returns a result for each token, the results include padding. `done` is called after each batch, with
        the number of rows just finished.
        """
        import torch

        from heedful.architectures.model import check_no_nan, evaluating

        outputs: list[Tensor] = [torch.empty(0)] * len(rows)
        device = next(self.model.parameters()).device
        with torch.inference_mode(), evaluating(self.model):
            for batch in batches(rows, BATCH_TOKENS):
                # Moved to the CPU at once, so that the results of a window take no GPU memory.
                results = apply(*padded_inputs([rows[i] for i in batch], device)).float().cpu()
                check_no_nan(results)
                for index, result in zip(batch, results, strict=True):
                    outputs[index] = result
                done(len(batch))
        return outputs


def padded_inputs(rows: Sequence[list[int]], device: "torch.device") -> "list[Tensor]":
    """Return token ids, padding mask and segments of rows of token ids, all (B S)."""
    import torch

    ids, padding_mask = pad(rows)
    return [torch.from_numpy(x).to(device) for x in (ids, padding_mask, segments(ids))]


def row_inputs(model: "nn.Module", row: list[int]) -> ModelInputs:
    """Return the inputs of a model for a single row of token ids, without padding."""
    return ModelInputs(padded_inputs([row], next(model.parameters()).device), row)


M_co = TypeVar("M_co", bound="Model", covariant=True)
A_co = TypeVar("A_co", covariant=True)
Input = str | tuple[str, str | None] | list[str]  # a text, a text pair, or for taggers a list of words


class TextPredictor(Predictor[M_co, A_co]):
    """Base class of predictors that give one answer for each text or text pair (classes, scores, tags, answers).

    Answers are dataclasses whose `str` is one line, as `heedful predict` prints it. The model reads at most
    `data.max_length` tokens.

    Attributes:
        inputs: The kind of input that the predictor accepts.
        columns: The columns of the table that `heedful predict` writes, with one row for each answer.
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
        """Predict the answer to a text, or the answers to several texts, in order.

        Args:
            texts: A string or a `Text`, which gives one answer; or an iterable of strings and pairs, which gives a list
                of answers. A pair is a `Text(first, second)` or, inside an iterable, a tuple.
        """
        return self.inputs.one_or_all(self.answers, texts)

    __call__ = predict

    def predict_lines(self, texts: Iterable[Input]) -> Iterator[A_co]:
        """Predict the answer to each of any number of texts, in order and in bounded memory."""
        return self.answers(self.inputs.each(texts))

    def check(self, text: Text) -> None:
        """Raise an InputError if the model cannot read a text, such as a single text if it reads pairs."""

    def model_inputs(self, value: str, second: str | None) -> ModelInputs:
        row, *others = self.windows(Text(value, second))
        if others:
            raise InputError(
                f"the text is read in {len(others) + 1} parts of at most {self.reader.longest} tokens, of which an "
                "inspection shows only one; give a shorter text"
            )
        return row_inputs(self.model, row)

    def ranked_options(self, value: Any, second: str | None) -> list[Answer]:
        [answer] = self.predict([Text(value, second)])
        return [Answer(self.options_of(answer))]

    def options_of(self, answer: Any) -> list[Option]:
        """Return the possible outputs in an answer with their probabilities, best first."""
        return [Option(str(answer))]

    def windows(self, text: Text) -> list[list[int]]:
        """Encode a text or pair as the rows of token ids that the model reads: one row, or several windows."""
        return [self.reader.encode(text)]

    def line(self, answer: Any) -> str:
        """Format an answer as the line that `heedful predict` prints."""
        return str(answer)

    def cells(self, answer: Any) -> dict[str, object]:
        """Return the value in each of the `columns` for an answer: by default, its attribute of the same name."""
        return {name: getattr(answer, name) for name in self.columns}

    @abstractmethod
    def answers(self, texts: Iterator[Text]) -> Iterator[A_co]:
        """Predict the answer to each text, in order."""


def as_pair(value: object) -> Text:
    """Convert a string, or a tuple (first, second) in which `second` may be None, to a `Text`."""
    if isinstance(value, tuple) and len(value) == 2:
        first, second = value
        return Text(as_text(first), None if second is None else as_text(second))
    if not isinstance(value, str):
        raise InputError(f"{described(value)} is not a text; give a string, or for a pair Text(first, second)")
    return Text(value)


class TextsAndPairs(InputKind[Text]):
    """Input kind of texts and text pairs. A bare tuple of two strings is rejected: it may be a pair or two texts."""

    def each(self, inputs: object) -> Iterator[Text]:
        if isinstance(inputs, tuple) and len(inputs) == 2 and all(isinstance(one, str) for one in inputs):
            raise InputError(
                f"{described(inputs)} may be a pair or two texts; give Text(first, second) or [(first, second)] for a "
                "pair, or [first, second] for two texts"
            )
        return super().each(inputs)


TextPredictor.inputs = PAIRS = TextsAndPairs("text", (str, Text), as_pair, "a string")
