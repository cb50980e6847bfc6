"""Answers of a predictor in one form for all tasks: options with probabilities or scores, best first.

Translations of a sentence, words for each gap, the classes of a text. T tokens, V the size of the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.inspector.capture.sources import Given, Pieces, decoded
from heedful.predictors.answerer import Answerer
from heedful.predictors.classifier import Classifier
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.generator import Generation
from heedful.predictors.media_classifier import MediaClassifier
from heedful.predictors.scorer import Scorer
from heedful.predictors.tagger import Tagger
from heedful.predictors.text_predictor import Text
from heedful.predictors.word_vectors import WordVectors
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer import EOS, MASK, Tokenizer

CANDIDATES = 10  # words for each gap, and neighbours of each word


@dataclass(frozen=True)
class Option:
    """One possible output of a model for a text, such as a translation, a word for a gap, or a class.

    Attributes:
        text: the output as text.
        probability: probability that the model gives the output; None if the model gives none.
        score: score of a hypothesis in beam search.
        pieces: tokens of an output that was generated token by token.
        log_probs: log-probability of each token in `pieces`.
        complete: False if a length limit cut the output.
    """

    text: str
    probability: float | None = None
    score: float | None = None
    pieces: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Answer:
    """Answer of a model about a text or about one token, as a list of options.

    Attributes:
        options: possible outputs, best first.
        place: index of the token that the answer is about, such as a gap, from 0; None: the whole text.
    """

    options: list[Option]
    place: int | None = None


def found_by_search(found: Sequence[Hypothesis], tokenizer: Tokenizer) -> Answer:
    """Answer with the hypotheses of a beam search as options."""
    return Answer([_written(hypothesis, tokenizer) for hypothesis in found])


def continued(found: Generation, tokenizer: Tokenizer) -> Answer:
    """Return a language model's continuation of a prompt as an `Answer` with one option."""
    pieces = tuple(tokenizer.pieces(found.tokens))
    log_probs = tuple(found.token_scores[: len(pieces)])
    return Answer([Option(found.text, pieces=pieces, log_probs=log_probs, complete=found.reason != "length")])


def given(text: str, written: Pieces, logits: Float[Tensor, "T V"]) -> Answer:
    """Answer with a given target as its only option, and the model's log-probability of each token."""
    chosen = logits.log_softmax(-1).gather(-1, torch.tensor(written.ids)[:, None])[:, 0]
    return Answer([Option(text, pieces=tuple(written.labels), log_probs=tuple(chosen.tolist()))])


def _written(found: Hypothesis, tokenizer: Tokenizer) -> Option:
    tokens = [*found.tokens, EOS] if found.complete else found.tokens
    return Option(
        tokenizer.decode(found.tokens),
        score=found.score,
        pieces=tuple(tokenizer.pieces(tokens)),
        log_probs=tuple(found.token_scores),
        complete=found.complete,
    )


@singledispatch
def answers(subject: Any, text: str, second: str | None = None) -> list[Answer]:
    """Answers of a predictor that chooses, for a text, a pair of texts or a file, and neighbours of word vectors.

    Empty for other predictors, and for a filler whose text has no gap.
    """
    del subject, text, second
    return []


@answers.register
def _(subject: Filler, text: str, second: str | None = None) -> list[Answer]:
    if second is not None or not GAP.search(text):
        return []
    gaps = [place for place, token in enumerate(subject.encode(text)) if token == MASK]
    return [
        Answer([Option(candidate.text, candidate.probability) for candidate in candidates], place)
        for place, candidates in zip(gaps, subject.fill(text, CANDIDATES), strict=True)
    ]


@answers.register
def _(subject: Classifier, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    likeliest = sorted(found.probabilities.items(), key=lambda item: -item[1])
    return [Answer([Option(label, probability) for label, probability in likeliest])]


@answers.register
def _(subject: MediaClassifier, given: Given, second: str | None = None) -> list[Answer]:
    del second  # `reading` refuses one
    likeliest = sorted(class_probabilities(subject, given).items(), key=lambda item: -item[1])
    return [Answer([Option(label, probability) for label, probability in likeliest])]


def class_probabilities(subject: MediaClassifier, given: Given) -> dict[str, float]:
    """Probabilities of the classes of a picture or sound.

    Raises:
        InputError: it is a text, or cannot be read.
    """
    [found] = subject.answers([[decoded(subject.reader, given)]])
    return found.probabilities


@answers.register
def _(subject: Tagger, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    return [Answer([Option(f"{entity.text}: {entity.kind}", entity.probability) for entity in found.spans])]


@answers.register
def _(subject: Answerer, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    return [Answer([Option(found.answer, found.probability)])]


@answers.register
def _(subject: WordVectors, text: str, second: str | None = None) -> list[Answer]:
    del second  # `reading` refuses one
    near = [subject.nearest(subject.space.words[row], CANDIDATES) for row in subject.rows(text)]
    return [Answer([Option(one.word, score=one.similarity) for one in found], i) for i, found in enumerate(near)]


@answers.register
def _(subject: Scorer, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    return [Answer([Option(str(found))])]
