"""What switching heads off does to one look: what the model says then, and what becomes of what it said before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import starmap
from typing import Any

import torch

from heedful.decode.filler import GAP, Filler
from heedful.inspector.capture.forward_inputs import ForwardPass, model_of
from heedful.inspector.capture.head_masks import Head, switched_off
from heedful.inspector.capture.recorder import recording
from heedful.inspector.look import Look, ask
from heedful.inspector.measures.answers import CANDIDATES, Answer
from heedful.inspector.measures.teacher_forcing import gap_log_probs, log_probs
from heedful.predict.batching import Text
from heedful.predict.classifier import Classifier


@dataclass(frozen=True)
class Choice:
    """One of the things that a model chooses from: a word for a gap, a class.

    Attributes:
        text: it.
        whole: how probable it was.
        without: how probable it is without the heads.
    """

    text: str
    whole: float
    without: float


@dataclass(frozen=True)
class Effect:
    """A look compared with the same one without some heads.

    Attributes:
        answers: what the model says without them.
        pieces: the tokens that the look is about, where a model writes: the very same ones on both sides.
        whole: log P of each, given those before it.
        without: the same without the heads.
        choices: for each gap, or for the text, what may be said and how probable that was and is, likeliest first.
    """

    answers: list[Answer]
    pieces: list[str]
    whole: list[float]
    without: list[float]
    choices: list[list[Choice]]


def effect(subject: Any, seen: Look, off: Iterable[Head], way: str = "silent") -> Effect:
    """What becomes of a look without some heads.

    Args:
        subject: what was looked into.
        seen: the look; heads that its question switches off are off on both sides.
        off: the heads.
        way: one of `heedful.inspector.capture.head_masks.WAYS`.

    Raises:
        InputError: the model has no such heads, or there is no such way.
    """
    model, question, reading = model_of(subject), seen.question, seen.reading
    before = switched_off(question.off, question.way)
    line = next((line.written for line in reading.lines.values() if line.written), None)
    with recording(model, edits=before):
        whole = log_probs(reading) if line else []
        chances = probabilities(subject, reading, question.text, question.target)
    same_way = question.off if question.way == way else ()
    with recording(model, edits=before | switched_off([*same_way, *off], way)):
        answers = ask(subject, question).answers
        without = log_probs(reading) if line else []
        left = probabilities(subject, reading, question.text, question.target)
    choices = list(starmap(likeliest_choices, zip(chances, left, strict=True)))
    return Effect(answers, line.labels if line else [], whole, without, choices)


def likeliest_choices(whole: dict[str, float], without: dict[str, float]) -> list[Choice]:
    """Those that are among the likeliest with all heads or without some."""
    likely = {text for chances in (whole, without) for text in sorted(chances, key=lambda x: -chances[x])[:CANDIDATES]}
    return [Choice(text, whole[text], without[text]) for text in sorted(likely, key=lambda text: -whole[text])]


@singledispatch
def probabilities(subject: Any, reading: ForwardPass, text: str, second: str | None) -> Sequence[dict[str, float]]:
    """How probable whatever decides something takes each thing that it may say; nothing where it decides nothing."""
    del subject, reading, text, second
    return []


@probabilities.register
def _(subject: Filler, reading: ForwardPass, text: str, second: str | None) -> Sequence[dict[str, float]]:
    if second is not None or not GAP.search(text):
        return []
    names = subject.tokenizer.pieces(range(len(subject.tokenizer)))
    return [dict(zip(names, torch.exp(row).tolist(), strict=True)) for row in gap_log_probs(subject, reading)]


@probabilities.register
def _(subject: Classifier, reading: ForwardPass, text: str, second: str | None) -> Sequence[dict[str, float]]:
    del reading
    [found] = subject.predict([Text(text, second)])
    return [found.probabilities]
