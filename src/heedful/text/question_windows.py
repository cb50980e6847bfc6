"""Input of question answering: a question beside each window of the text that may answer it, as rows of ids."""

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
    """An encoded text that may answer questions: its token ids, and the characters that each token stands for."""

    text: str
    ids: list[int]
    places: list[Place]

    def tokens(self, begin: int, end: int) -> range:
        """The tokens of the text that characters `begin` to `end` - 1 are part of, without the space around them."""
        begin, end = self._stripped(begin, end)
        first = bisect_right(self.places, begin, key=itemgetter(1))
        return range(first, bisect_left(self.places, end, key=itemgetter(0)))

    def characters(self, first: int, last: int) -> Place:
        """Begin and end of the characters of tokens `first` to `last`, without the space around them."""
        return self._stripped(self.places[first][0], self.places[last][1])

    def _stripped(self, begin: int, end: int) -> Place:
        text = self.text[begin:end]
        end = begin + len(text.rstrip())
        return end - len(text.strip()), end


@dataclass(frozen=True)
class QuestionWindow:
    """Input row of question answering for one window of the text: <bos> question <eos> window <eos>.

    Attributes:
        ids: The token ids of the row.
        window: The tokens of the text that are in the row.
        begin: The place in the row where the window begins.
        nowhere: The place in the row that stands for an answer that is not in the window.
    """

    ids: list[int]
    window: Window
    begin: int
    nowhere: int

    def place(self, tokens: range) -> tuple[int, int]:
        """The first and last place in the row of tokens of the text; `nowhere` unless all of them are in the window."""
        if not tokens or not self.window.begin <= tokens[0] <= tokens[-1] < self.window.end:
            return self.nowhere, self.nowhere
        return self.begin + tokens[0] - self.window.begin, self.begin + tokens[-1] - self.window.begin


def encode_context(tokenizer: Tokenizer, text: str) -> Context:
    """Encode a text that may answer questions, with the characters that each token stands for.

    Raises:
        InputError: The text holds a lone surrogate.
    """
    return Context(text, *tokenizer.encode_with_places(text))


def readings(
    question: Sequence[int], context: Context, longest: int, *, causal: bool, name: str
) -> list[QuestionWindow]:
    """Make the input rows for a question: one for each window of the text that may answer it.

    Args:
        question: The token ids of the question.
        context: The encoded text.
        longest: Tokens of a row, at most.
        causal: True if a token sees only the tokens before it. Then `nowhere` is the last <eos>, which alone has seen
            all, else it is <bos> (Devlin et al. 2019, section 4.3).
        name: The name of the question, for messages.

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
