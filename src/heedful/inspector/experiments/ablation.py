"""Ablation of attention heads: outputs, probabilities and BLEU of a model without some heads (Michel et al. 2019)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from heedful.inspector.capture.forward_inputs import ForwardPass, gap_log_probs, log_probs, model_of
from heedful.inspector.capture.recorder import Head, heads, recording, switched_off
from heedful.inspector.look import Inspection, Question, ask
from heedful.metrics import Comparison, Scoring, paired_bootstrap
from heedful.predictors.classifier import Classifier
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.media_classifier import MediaClassifier
from heedful.predictors.outputs import MAX_OPTIONS, Answer
from heedful.predictors.translator import Translator


def translations_without(
    translator: Translator, off: Iterable[Head], sources: Sequence[str], way: str = "silent"
) -> list[str]:
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
    """Compare a translator's BLEU with all attention heads and without some, by paired bootstrap resampling.

    Args:
        translator: The translator, with model, tokenizers and search settings.
        off: The attention heads to switch off.
        sources: Source sentences.
        references: Reference translations of the sources.
        way: How heads are switched off, one of `WAYS` in `heedful.inspector.capture.recorder`.
        whole: Translations of the sources with all heads, if already computed.
        language: Language of the references, such as "zh"; it selects BLEU's word tokenizer.
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
    """Ablate each attention head of a translator on its own, and yield its effect on BLEU; see `cost` for arguments."""
    if whole is None:
        whole = translator.translate(sources)
    for head in heads(translator.model):
        yield head, cost(translator, [head], sources, references, way, whole=whole, language=language)


@dataclass(frozen=True)
class Choice:
    """One of a model's options (a class, or a word for a gap) with its probabilities."""

    text: str
    whole: float  # with all heads
    without: float  # without the heads that are switched off


@dataclass(frozen=True)
class Effect:
    """Comparison of a model's output on one text with all attention heads and without some."""

    answers: list[Answer]  # without the heads
    pieces: list[str]  # target tokens of the inspection; empty if the model does not generate
    whole: list[float]  # log P of each target token given the tokens before it, with all heads
    without: list[float]  # the same, without the heads
    choices: list[list[Choice]]  # options for each gap, or for the whole text, sorted by `whole`, highest first


def effect(subject: Any, inspection: Inspection, off: Iterable[Head], way: str = "silent") -> Effect:
    """Compute the effect of switching off some attention heads on an inspection.

    Args:
        subject: The predictor of the inspection.
        inspection: The inspection; heads that its question switches off are off on both sides of the comparison.
        off: The attention heads to switch off.
        way: How heads are switched off, one of `heedful.inspector.capture.recorder.WAYS`.
    """
    model, question, forward = model_of(subject), inspection.question, inspection.forward
    target = forward.target
    edits = switched_off(question.off, question.way)
    with recording(model, edits=edits):
        whole = log_probs(forward) if target else []
        whole_probabilities = probabilities(subject, forward, question)

    # An edit replaces an earlier one of the same tensor, so heads that are switched off in the same way share one edit.
    same_way = question.off if question.way == way else ()
    with recording(model, edits=edits | switched_off([*same_way, *off], way)):
        answers = ask(subject, question).answers
        without = log_probs(forward) if target else []
        probabilities_without = probabilities(subject, forward, question)
    choices = list(starmap(top_choices, zip(whole_probabilities, probabilities_without, strict=True)))
    return Effect(answers, target.labels if target else [], whole, without, choices)


def top_choices(whole: Mapping[str, float], without: Mapping[str, float]) -> list[Choice]:
    """Return the options that are most probable with all heads or without some, sorted by probability with all."""
    # The best options of both sides, so that one that gains probability without the heads is listed as well.
    top = {
        text
        for probabilities in (whole, without)
        for text in sorted(probabilities, key=lambda text: -probabilities[text])[:MAX_OPTIONS]
    }
    return [Choice(text, whole[text], without[text]) for text in sorted(top, key=lambda text: -whole[text])]


def probabilities(subject: Any, forward: ForwardPass, question: Question) -> Sequence[Mapping[str, float]]:
    """Return the probabilities of a filler's words for each gap, or of a classifier's classes; empty for others."""
    match subject:
        case Classifier() | MediaClassifier():
            [answer] = subject.ranked_options(question.input, question.target)
            return [{option.text: option.probability or 0.0 for option in answer.options}]
        case Filler() if question.target is None and GAP.search(question.text):
            pieces = subject.tokenizer.pieces(range(len(subject.tokenizer)))
            return [dict(zip(pieces, row.exp().tolist(), strict=True)) for row in gap_log_probs(subject, forward)]
    return []
