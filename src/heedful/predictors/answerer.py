"""Extractive question answering: the answer to a question is a span of a text (Devlin et al. 2019, 4.2 and 4.3).

S tokens of a row, N tokens of a window.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.architectures import TokenClassifier
from heedful.config.schema import DataConfig
from heedful.errors import InputError
from heedful.predictors.outputs import Option
from heedful.predictors.text_predictor import Text, TextPredictor
from heedful.text.sequences import Context, QuestionWindow, encode_context, question_windows
from heedful.text.tokenizer import Tokenizer

MAX_ANSWER_TOKENS = 30  # as in BERT's code for SQuAD


@dataclass(frozen=True)
class Answered:
    """Answer to a question: characters `begin` to `end` - 1 of a text, from 0; empty if the text contains no answer.

    `probability` is the joint probability of the first and the last token of the answer within one window of the text.
    """

    answer: str
    begin: int
    end: int
    probability: float

    def __str__(self) -> str:
        return self.answer


class SpanCandidate(NamedTuple):
    """Best answer span in one window."""

    margin: float  # log-probability minus the log-probability of "no answer", in nats
    probability: float
    tokens: tuple[int, int] | None  # first and last token; None: the window contains no answer


class Answerer(TextPredictor[TokenClassifier, Answered]):
    """Predictor for extractive question answering (such as SQuAD): a trained model with its tokenizer."""

    columns = ("answer", "probability")

    def __init__(self, model: TokenClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.causal = model.backbone.causal

    def answers(self, texts: Iterator[Text]) -> Iterator[Answered]:
        """Answer each question: a pair consists of a question and the text in which to find the answer."""
        questions, copies = tee(map(self.read, texts))
        outputs = self.reader.read_groups([window.ids for window in windows] for _, windows in copies)
        for (context, windows), logits in zip(questions, outputs, strict=True):
            yield answered(context, [best_span(*pair) for pair in zip(windows, logits, strict=True)])

    def windows(self, text: Text) -> list[list[int]]:
        return [window.ids for window in self.read(text)[1]]

    def options_of(self, answer: Answered) -> list[Option]:
        return [Option(answer.answer, answer.probability)]

    def check(self, text: Text) -> None:
        """Check that a question comes with a text, and leaves room for it."""
        self.read(Text(text.first, text.second and ""))

    def read(self, text: Text) -> tuple[Context, list[QuestionWindow]]:
        """Encode a question and its text as rows of token ids: one for each window of the text."""
        name = repr(text.first[:40])
        if text.second is None:
            raise InputError(
                f"{name} is a question without a text; give the text after a tab, or in Python give "
                "Text(question, text)"
            )
        context, question = encode_context(self.tokenizer, text.second), self.tokenizer.encode(text.first)
        return context, question_windows(question, context, self.reader.longest, causal=self.causal, name=name)


def best_span(reading: QuestionWindow, logits: Tensor) -> SpanCandidate:
    """Return the most probable answer span of a row, or "no answer", given the logits of the row (S, 2)."""
    window, begin = reading.window, reading.begin
    count = window.end - window.begin
    # The softmax is over the tokens of the text and the position for "no answer".
    log_probs = logits[[reading.nowhere, *range(begin, begin + count)]].log_softmax(0)
    nothing = log_probs[0].sum()
    spans = log_probs[1:, 0, None] + log_probs[1:, 1]  # (N, N): first and last token

    # A span does not end before it begins, is not too long, and begins where this window has the most context.
    allowed = torch.ones_like(spans, dtype=torch.bool).triu().tril(MAX_ANSWER_TOKENS - 1)
    allowed[: window.first - window.begin] = False
    allowed[window.stop - window.begin :] = False

    scores = torch.cat([nothing[None], spans.masked_fill(~allowed, -torch.inf).flatten()])
    # Index 0 is "no answer", and index 1 + first * N + last is a span.
    best = int(scores.argmax())
    first, last = divmod(best - 1, max(count, 1))
    tokens = (window.begin + first, window.begin + last) if best else None
    return SpanCandidate((scores[best] - nothing).item(), scores[best].exp().item(), tokens)


def answered(context: Context, candidates: Sequence[SpanCandidate]) -> Answered:
    """Select the best answer among the candidates of all windows; "no answer" gets the lowest of its probabilities."""
    # Margins are compared instead of probabilities, which come from a separate softmax for each window.
    best = max(candidates, key=lambda candidate: (candidate.margin, -candidate.probability))
    begin, end = context.characters(*best.tokens) if best.tokens else (0, 0)
    return Answered(context.text[begin:end], begin, end, best.probability)
