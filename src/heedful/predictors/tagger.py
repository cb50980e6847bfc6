"""Tagging of words, such as named entity recognition, with the Viterbi algorithm.

N words, C tags.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.architectures import TokenClassifier
from heedful.config.schema import DataConfig
from heedful.data.readers.tagged import may_follow, spans
from heedful.errors import InputError
from heedful.predictors.outputs import Option
from heedful.predictors.predictor import InputKind, as_text, described
from heedful.predictors.text_predictor import Text, TextPredictor, as_pair
from heedful.text.tokenizer import Tokenizer
from heedful.text.words import SplitText, WordRow, WordSplitter, rows_of_words


def viterbi(
    scores: Float[np.ndarray, "N C"],
    follows: Bool[np.ndarray, "C C"],
    first: Bool[np.ndarray, " C"],
    last: Bool[np.ndarray, " C"],
) -> list[int]:
    """Find the sequence of states with the largest sum of scores among the allowed sequences (Viterbi decoding).

    Args:
        scores: The score of each state at each step, such as log-probabilities.
        follows: True at (i, j) if state j may follow state i.
        first: True for the states that may begin a sequence.
        last: True for the states that may end a sequence.
    """
    if not len(scores):
        return []
    total, predecessors = np.where(first, scores[0], -np.inf), []
    for row in scores[1:]:
        paths = np.where(follows, total[:, None], -np.inf)  # (C, C): the best path to state i, followed by state j
        predecessors.append(paths.argmax(0))
        total = paths.max(0) + row
    path = [int(np.where(last, total, -np.inf).argmax())]
    for before in reversed(predecessors):
        path.append(int(before[path[-1]]))
    return path[::-1]


@dataclass(frozen=True)
class Entity:
    """Entity in a sentence: words `begin` to `end` - 1, from 0, with the joint probability of their tags."""

    text: str
    kind: str
    begin: int
    end: int
    probability: float


@dataclass(frozen=True)
class TaggedWords:
    """Words of a sentence, a tag for each, and the entities that the tags describe."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[Entity, ...]

    def __str__(self) -> str:
        words = list(self.words)
        for span in self.spans:
            words[span.end - 1] += f"/{span.kind}"
        return " ".join(words)


class Tagger(TextPredictor[TokenClassifier, TaggedWords]):
    """Tagger of words: a trained model with its tokenizer. It predicts only tag sequences that the scheme allows.

    An input is a string, which is split into words like the training data, or a list of words inside a list of inputs:
    `tagger.predict([["O'Brien", "lives", "here", "."]])`.
    """

    columns = ("words", "tags")

    def __init__(self, model: TokenClassifier, tokenizer: Tokenizer, data: DataConfig) -> None:
        super().__init__(model, tokenizer, data)
        self.causal = model.backbone.causal
        self.cutter = WordSplitter(data.words)
        self.tags = data.labels
        # The best tags of single words may form sequences that the scheme forbids, such as I-person after B-place.
        self.follows = np.array(
            [[may_follow(before, tag, data.labels) for tag in data.labels] for before in data.labels]
        )
        self.first = np.array([may_follow("O", tag, data.labels) for tag in data.labels])
        self.last = np.array([may_follow(tag, "O", data.labels) for tag in data.labels])

    def answers(self, texts: Iterator[Text]) -> Iterator[TaggedWords]:
        return self.tag(self.words(text) for text in texts)

    def windows(self, text: Text) -> list[list[int]]:
        return [row.ids for row in self.rows(self.words(text))]

    def options_of(self, answer: TaggedWords) -> list[Option]:
        return [Option(f"{entity.text}: {entity.kind}", entity.probability) for entity in answer.spans]

    def words(self, text: Text) -> list[str]:
        """Split a text into words like the training data; a `SplitText` is already split.

        With a tokenizer for pretokenized text, only spaces separate words.
        """
        self.check(text)
        line = text.first
        if isinstance(line, SplitText):
            return list(line.words)
        return line.split() if self.tokenizer.config.pretokenized else self.cutter.cut(line)

    def check(self, text: Text) -> None:
        if text.second is not None:
            raise InputError(
                f"{text.first[:40]!r} and {text.second[:40]!r} are a pair; a tagger reads lines without tabs"
            )

    def tag(self, sentences: Iterable[Sequence[str]]) -> Iterator[TaggedWords]:
        """Tag the words of sentences, each a list of words."""
        inputs, copies = tee((words, self.rows(words)) for words in SENTENCES.each(sentences))
        outputs = self.reader.read_groups([row.ids for row in rows] for _, rows in copies)
        for (words, rows), results in zip(inputs, outputs, strict=True):
            # The logits of each word come from the window in which it has the most context.
            logits = torch.zeros(len(words), results[0].size(-1))
            for row, result in zip(rows, results, strict=True):
                for word, position in row.places:
                    logits[word] = result[position]
            yield self.decide(words, logits)

    def rows(self, words: Sequence[str]) -> list[WordRow]:
        """Encode the words of a sentence as one row of token ids or, if it is too long, as one row for each window."""
        return rows_of_words(self.tokenizer, words, self.reader.longest, causal=self.causal)

    def decide(self, words: Sequence[str], logits: Tensor) -> TaggedWords:
        """Choose the most probable allowed sequence of tags, given the logits of each word, (N, C)."""
        scores = logits.log_softmax(-1).numpy()
        path = viterbi(scores, self.follows, self.first, self.last)
        # (N, C) -> (N,)
        log_probs = scores[np.arange(len(path)), path]
        tags = tuple(self.tags[tag] for tag in path)
        entities = tuple(
            Entity(" ".join(words[begin:end]), kind, begin, end, float(np.exp(log_probs[begin:end].sum())))
            for begin, end, kind in spans(tags)
        )
        return TaggedWords(tuple(words), tags, entities)


def as_words(value: object) -> Sequence[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(
            f"{described(value)} is not a list of words; `predict` also takes texts, and splits them into words"
        )
    return [as_text(word) for word in value]


SENTENCES = InputKind("sentence", (str,), as_words, "a list of words")


def as_sentence(value: Any) -> Text:
    """Convert a string, or a list or array of words, to a text. A pair stays a pair, which `check` rejects."""
    words = value.tolist() if hasattr(value, "tolist") and not isinstance(value, str) else value
    is_list = isinstance(words, list) or (isinstance(words, tuple) and len(words) != 2)
    return Text(SplitText(words)) if is_list else as_pair(value)


Tagger.inputs = InputKind("text", (str, Text), as_sentence, "a string or a list of words")
