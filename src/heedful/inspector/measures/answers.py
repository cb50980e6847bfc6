"""What a model says about a text, in one form for all tasks: options to choose from, best first.

Translations of a sentence, words for each gap, the classes of a text. T tokens, V the size of the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.decode.filler import GAP, Filler
from heedful.decode.generator import Generation
from heedful.decode.hypothesis import Hypothesis
from heedful.inspector.capture.pieces import Pieces
from heedful.predict.answerer import Answerer
from heedful.predict.batching import Text
from heedful.predict.classifier import Classifier
from heedful.predict.scorer import Scorer
from heedful.predict.tagger import Tagger
from heedful.text.tokenizer import EOS, MASK, Tokenizer

CANDIDATES = 10  # for each gap


@dataclass(frozen=True)
class Option:
    """One thing that may be said.

    Attributes:
        text: it.
        probability: how probable the model takes it to be; None: the model does not say.
        score: of a search.
        pieces: of what was written token by token.
        log_probs: of these.
        complete: whether it ended by itself.
    """

    text: str
    probability: float | None = None
    score: float | None = None
    pieces: tuple[str, ...] = ()
    log_probs: tuple[float, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Answer:
    """What is said about one place.

    Attributes:
        options: best first.
        place: the token that it is said about, from 0; None: the whole text.
    """

    options: list[Option]
    place: int | None = None


def found_by_search(found: Sequence[Hypothesis], tokenizer: Tokenizer) -> Answer:
    """What a search found."""
    return Answer([_written(hypothesis, tokenizer) for hypothesis in found])


def continued(found: Generation, tokenizer: Tokenizer) -> Answer:
    """How a language model went on."""
    pieces = tuple(tokenizer.pieces(found.tokens))
    log_probs = tuple(found.token_scores[: len(pieces)])
    return Answer([Option(found.text, pieces=pieces, log_probs=log_probs, complete=found.reason != "length")])


def given(text: str, written: Pieces, logits: Float[Tensor, "T V"]) -> Answer:
    """What a model was made to write, and how probable it takes each token of it."""
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
    """What whatever reads with a model says about a text or a pair of texts; nothing, if it says nothing."""
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
def _(subject: Tagger, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    return [Answer([Option(f"{entity.text}: {entity.kind}", entity.probability) for entity in found.spans])]


@answers.register
def _(subject: Answerer, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    return [Answer([Option(found.answer, found.probability)])]


@answers.register
def _(subject: Scorer, text: str, second: str | None = None) -> list[Answer]:
    [found] = subject.predict([Text(text, second)])
    return [Answer([Option(str(found))])]
