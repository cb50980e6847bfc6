"""Ablation of attention heads: outputs, probabilities and BLEU of a model without some heads (Michel et al. 2019)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import starmap
from typing import Any

import torch

from heedful.inspector.capture.forward_inputs import ForwardPass, model_of
from heedful.inspector.capture.head_masks import Head, heads, switched_off
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.sources import Given
from heedful.inspector.look import Look, ask
from heedful.inspector.measures.answers import CANDIDATES, Answer, class_probabilities
from heedful.inspector.measures.teacher_forcing import gap_log_probs, log_probs
from heedful.metrics import Comparison, Scoring, paired_bootstrap
from heedful.predictors.classifier import Classifier
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.media_classifier import MediaClassifier
from heedful.predictors.text_predictor import Text
from heedful.predictors.translator import Translator


def translations_without(
    translator: Translator, off: Iterable[Head], sources: Sequence[str], way: str = "silent"
) -> list[str]:
    """Translate sentences with some attention heads switched off."""
    with recording(translator.model, edits=switched_off(off, way)):
        return translator.translate(sources)


def cost(
    translator: Translator,
    off: Iterable[Head],
    sources: Sequence[str],
    references: Sequence[str],
    way: str = "silent",
    *,
    whole: Sequence[str] | None = None,
    language: str = "",
) -> Comparison:
    """Compare BLEU with all attention heads and without some, with the interval of a paired bootstrap.

    Args:
        translator: the translator, with model, tokenizers and search settings.
        off: the attention heads to switch off.
        sources: source sentences.
        references: reference translations of the sources.
        way: how heads are switched off, one of `WAYS` in `heedful.inspector.capture.head_masks`.
        whole: the model's translations of the sources with all heads, if known already.
        language: language of the references, such as "zh"; selects BLEU's word tokenizer.

    Raises:
        InputError: there are no sentences, or not as many references as sentences.
    """
    if whole is None:
        whole = translator.translate(sources)
    without = translations_without(translator, off, sources, way)
    return paired_bootstrap(whole, without, [references], Scoring(metrics=("bleu",), language=language))[0]


def sweep(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    way: str = "silent",
    *,
    whole: Sequence[str] | None = None,
    language: str = "",
) -> Iterator[tuple[Head, Comparison]]:
    """Ablate each attention head of a translator alone and yield its effect on BLEU; arguments as in `cost`."""
    if whole is None:
        whole = translator.translate(sources)
    for head in heads(translator.model):
        yield head, cost(translator, [head], sources, references, way, whole=whole, language=language)


@dataclass(frozen=True)
class Choice:
    """Option that a model chooses from, a word for a gap or a class, with and without some attention heads.

    Attributes:
        text: the word or the label of the class.
        whole: probability with all heads.
        without: probability without the heads that are switched off.
    """

    text: str
    whole: float
    without: float


@dataclass(frozen=True)
class Effect:
    """Comparison of a model's output on one text with all attention heads and without some.

    Attributes:
        answers: the model's answers without the heads.
        pieces: target tokens of the look, whose log-probabilities are compared; empty if the model
            generates nothing.
        whole: log P of each target token given the tokens before it, with all heads.
        without: log P of each target token given the tokens before it, without the heads.
        choices: for each gap, or for the whole text, the options and their probabilities, likeliest first.
    """

    answers: list[Answer]
    pieces: list[str]
    whole: list[float]
    without: list[float]
    choices: list[list[Choice]]


def effect(subject: Any, seen: Look, off: Iterable[Head], way: str = "silent") -> Effect:
    """Compute the effect on a look of switching off some attention heads.

    Args:
        subject: the predictor that the look is from.
        seen: the look; heads that its question switches off are off on both sides of the comparison.
        off: the attention heads to switch off.
        way: how heads are switched off, one of `heedful.inspector.capture.head_masks.WAYS`.

    Raises:
        InputError: the model has no such heads, or `way` is unknown.
    """
    model, question, reading = model_of(subject), seen.question, seen.reading
    before = switched_off(question.off, question.way)
    line = next((line.written for line in reading.lines.values() if line.written), None)
    with recording(model, edits=before):
        whole = log_probs(reading) if line else []
        chances = probabilities(subject, reading, question.given, question.target)
    same_way = question.off if question.way == way else ()
    with recording(model, edits=before | switched_off([*same_way, *off], way)):
        answers = ask(subject, question).answers
        without = log_probs(reading) if line else []
        left = probabilities(subject, reading, question.given, question.target)
    choices = list(starmap(likeliest_choices, zip(chances, left, strict=True)))
    return Effect(answers, line.labels if line else [], whole, without, choices)


def likeliest_choices(whole: dict[str, float], without: dict[str, float]) -> list[Choice]:
    """Options that are among the likeliest with all attention heads or without some, likeliest first."""
    likely = {text for chances in (whole, without) for text in sorted(chances, key=lambda x: -chances[x])[:CANDIDATES]}
    return [Choice(text, whole[text], without[text]) for text in sorted(likely, key=lambda text: -whole[text])]


@singledispatch
def probabilities(subject: Any, reading: ForwardPass, given: Given, second: str | None) -> Sequence[dict[str, float]]:
    """Probabilities of a filler's words for each gap, or of a classifier's classes; empty for other predictors."""
    del subject, reading, given, second
    return []


@probabilities.register
def _(subject: MediaClassifier, reading: ForwardPass, given: Given, second: str | None) -> Sequence[dict[str, float]]:
    del reading, second
    return [class_probabilities(subject, given)]


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
