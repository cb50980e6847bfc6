"""A question beside each window of the text that may answer it, as rows of ids that a model reads."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from heedful.errors import InputError
from heedful.text.sequence import sequence
from heedful.text.tokenizer import Place, Tokenizer
from heedful.text.windows import Window, windows


@dataclass(frozen=True)
class Context:
    """A text that may answer questions: its pieces, and the characters that each stands for."""

    text: str
    ids: list[int]
    places: list[Place]

    def tokens(self, begin: int, end: int) -> range:
        """The pieces that characters `begin` to `end` - 1 are part of, without the space around them."""
        begin, end = self._stripped(begin, end)
        first = bisect_right(self.places, begin, key=itemgetter(1))
        return range(first, bisect_left(self.places, end, key=itemgetter(0)))

    def characters(self, first: int, last: int) -> Place:
        """The characters that pieces `first` to `last` stand for, without the space around them."""
        return self._stripped(self.places[first][0], self.places[last][1])

    def _stripped(self, begin: int, end: int) -> Place:
        text = self.text[begin:end]
        end = begin + len(text.rstrip())
        return end - len(text.strip()), end


@dataclass(frozen=True)
class QuestionWindow:
    """<bos> question <eos> window <eos>.

    Attributes:
        ids: the row.
        window: the tokens of the text that are in it.
        begin: where in the row they begin.
        nowhere: the place in the row that stands for an answer that is not in the window.
    """

    ids: list[int]
    window: Window
    begin: int
    nowhere: int

    def place(self, tokens: range) -> tuple[int, int]:
        """Where in the row tokens of the text begin and end; `nowhere` if there are none, or not all of them here."""
        if not tokens or not self.window.begin <= tokens[0] <= tokens[-1] < self.window.end:
            return self.nowhere, self.nowhere
        return self.begin + tokens[0] - self.window.begin, self.begin + tokens[-1] - self.window.begin


def encode_context(tokenizer: Tokenizer, text: str) -> Context:
    """The pieces of a text.

    Raises:
        InputError: The text holds a lone surrogate.
    """
    return Context(text, *tokenizer.encode_with_places(text))


def readings(
    question: Sequence[int], context: Context, longest: int, *, causal: bool, name: str
) -> list[QuestionWindow]:
    """A row for each window of a text.

    Args:
        question: Its ids.
        context: The text.
        longest: Tokens of a row, at most.
        causal: Whether a token sees those before it only. Then `nowhere` is the last <eos>, which alone has seen all,
            else it is <bos> (Devlin et al. 2019, section 4.3).
        name: What question it is, for messages.

    Raises:
        InputError: The question leaves less than half of a row to the text.
    """
    room = longest - len(question) - 3
    if 2 * room < longest:
        raise InputError(
            f"{name}: a question of {len(question)} tokens leaves its text less than half of the data.max_length = "
            f"{longest} that are read at once; shorten it, or train with a larger max_length"
        )
    begin = len(question) + 2
    found = []
    for window in windows(len(context.ids), room):
        ids = sequence(question, context.ids[window.begin : window.end], longest=longest)
        found.append(QuestionWindow(ids, window, begin, len(ids) - 1 if causal else 0))
    return found
