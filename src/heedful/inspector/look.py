"""Look into a model with one text, picture or sound: answers, beam search, logit lens and trace of the forward pass.

The server, exported pages and notebooks all show a `Look`.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import singledispatch
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.errors import InputError, RunError
from heedful.inspector.capture.forward_inputs import (
    ForwardPass,
    likeliest,
    model_of,
    of_generation,
    of_output,
    reading,
    tokenizers_of,
)
from heedful.inspector.capture.head_masks import Head, switched_off
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.sources import Given, Writer, as_text, check_length, decoding_of, writing
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import Trace, traced
from heedful.inspector.measures.answers import Answer, answers, continued, found_by_search, given
from heedful.inspector.measures.beam_search import BeamLog, Ghost, search_log
from heedful.inspector.measures.logit_lens import Lens, lens, speaks
from heedful.nn.attention import Attention
from heedful.predictors.captioner import Captioner
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.generator import Generator
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.predictors.word_vectors import WordVectors
from heedful.text.tokenizer_pair import TokenizerPair

LARGEST = 2_000_000_000  # bytes of the attention of all heads in a look
WIDEST = 20  # largest beam size of a logged search: the candidates of a step grow with its square


@dataclass(frozen=True, kw_only=True)
class Question:
    """Input of a look into a model: the text, picture or sound, and settings of search and ablation.

    Attributes:
        text: the input text; or the name of the picture or sound, for people to read: no file is opened by it.
        file: content of the file of a picture or sound; None: the model reads the text.
        target: the output that the model is given, or the second text of a pair; None: the model's own output.
        reference: reference translation, followed through the beam search.
        prefix: text that the translation has to begin with.
        beam: beam size; None: as in the model's settings.
        alpha: exponent of the length penalty; None: as in the model's settings.
        off: attention heads that are switched off.
        way: how heads are switched off, one of `heedful.inspector.capture.head_masks.WAYS`.
    """

    text: str
    target: str | None = None
    reference: str | None = None
    prefix: str = ""
    beam: int | None = None
    alpha: float | None = None
    off: tuple[Head, ...] = ()
    way: str = "silent"
    file: bytes | None = field(default=None, repr=False)

    @property
    def given(self) -> Given:
        """Input of the model: the text, or the content of the file."""
        return self.text if self.file is None else self.file

    def told(self) -> dict[str, Any]:
        """Question as JSON values, without the content of a file."""
        return asdict(replace(self, file=None))


@dataclass(frozen=True)
class Look:
    """Result of a look into a model: answers, trace of the forward pass, logit lens and log of the beam search.

    Attributes:
        question: the input.
        reading: the forward pass that was recorded.
        trace: the recorded tensors.
        answers: the model's outputs, or the target that the model was given.
        lens: logit lens; None if the model predicts no tokens.
        log: log of a translator's beam search; None for other models and for a given target.
        ghost: the reference, followed through the beam search.
        unknown: words of the question that the vocabulary lacks, so that the model reads <unk>.
    """

    question: Question
    reading: ForwardPass
    trace: Trace
    answers: list[Answer]
    lens: Lens | None
    log: BeamLog | None = None
    ghost: Ghost | None = None
    unknown: list[str] = field(default_factory=list)


def look(subject: Any, question: Question, keep: Collection[str] = ("*",)) -> Look:
    """Run a predictor on a question, and record its answers, trace, logit lens and beam search.

    Args:
        subject: a predictor, as `heedful.load` returns.
        question: the text or file, and the settings.
        keep: names of taps to record, or patterns; the logit lens needs "*.ffn.resid".

    Raises:
        InputError: the text is empty or too long, the file cannot be read, or the question does not fit the model.
        RunError: the model computes NaN.
    """
    if not question.text.strip():
        raise InputError("there is no text; give one sentence")
    edits = switched_off(question.off, question.way)
    with recording(model_of(subject), edits=edits), named(question):
        asked = ask(subject, question)
    check_size(asked.reading)
    seen = traced(asked.reading, keep, edits)
    if strange := next((name for name, values in seen.tensors.items() if np.isnan(values).any()), None):
        raise RunError(f"{strange} is not a number (NaN): the model's weights are damaged or its training diverged")
    through = lens(asked.reading.model, seen) if speaks(asked.reading.model) else None
    said = asked.answers or as_given(question, seen)
    lacking = unknown(subject, question)
    return Look(question, asked.reading, seen, said, through, asked.log, asked.ghost, lacking)


def check_size(found: ForwardPass) -> None:
    """Check that the attention of all heads fits into memory: scores, bias and weights grow with the square.

    Raises:
        InputError: it does not, as for a long sound.
    """
    lengths = {name: len(line.read.ids) for name, line in found.lines.items()}
    needed = 0
    for name, tap in taps(found.model).items():
        if name.endswith((".score", ".attn")) and isinstance(tap.module, Attention):
            queries, keys = (lengths[str(axis.line).split(".")[0]] for axis in tap.axes[1:])
            needed += 4 * tap.module.heads * queries * keys
    if needed > LARGEST:
        raise InputError(
            f"{max(lengths.values()):,} positions need {needed / 1e9:,.1f} GB for the attention of all heads, and a "
            f"look takes {LARGEST / 1e9:g} GB; give a shorter text or sound, or a smaller picture"
        )


@contextmanager
def named(question: Question) -> Iterator[None]:
    """Context manager that names the file of a question in errors about it."""
    try:
        yield
    except InputError as error:
        if question.file is None:
            raise
        raise InputError(f"{question.text}: {error}") from error


def as_given(question: Question, seen: Trace) -> list[Answer]:
    """Given target of a question as an answer with the model's log-probabilities; empty without a given target."""
    line = next((line.written for line in seen.lines.values() if line.written), None)
    if question.target is None or line is None or "logits" not in seen:
        return []
    return [given(question.target, line, torch.from_numpy(seen.tensors["logits"]))]


def unknown(subject: Any, question: Question) -> list[str]:
    """List the words of a question that the model's vocabulary lacks (<unk>), each word once."""
    pair = tokenizers_of(subject)
    written = [text for text in (question.target, question.reference, question.prefix) if text]
    found = [*unread(subject, question, pair), *(pair.target.unknown(text) for text in written)]
    return list(dict.fromkeys(word for words in found for word in words))


def unread(subject: Any, question: Question, pair: TokenizerPair) -> list[list[str]]:
    """Words of the text of a question that the vocabulary lacks, for each part of the text; none of a file."""
    if question.file is not None:
        return []
    parts = GAP.split(question.text) if isinstance(subject, Filler) else [question.text]
    lacking = subject.unknown if isinstance(subject, WordVectors) else pair.source.unknown
    # A space next to a gap is not part of a word; the tokenizer adds one before the first word of each part.
    return [lacking(part.strip()) for part in parts]


class Asked(NamedTuple):
    """A predictor's answers, its forward pass to record, and, if it searched, the log and reference's path."""

    reading: ForwardPass
    answers: list[Answer]
    log: BeamLog | None = None
    ghost: Ghost | None = None


@singledispatch
def ask(subject: Any, question: Question) -> Asked:
    """Run a predictor on a question: return its answers and the forward pass to record."""
    return Asked(reading(subject, question.given, question.target), answers(subject, question.given, question.target))


@ask.register(Translator)
@ask.register(Captioner)
@ask.register(Transcriber)
def _(subject: Writer, question: Question) -> Asked:
    asked = writing(searching(subject, question), question.given)
    if question.target is not None:
        return Asked(of_output(asked, asked.tokenizer.encode(question.target)), [])
    if question.reference is not None:
        check_length(asked.tokenizer.encode(question.reference), asked.longest, "a reference")
    log, followed = search_log(asked, question.reference, question.prefix)
    found = log.replay()
    return Asked(of_output(asked, found[0].tokens), [found_by_search(found, asked.tokenizer)], log, followed)


@ask.register
def _(subject: Generator, question: Question) -> Asked:
    if question.target is not None:
        return Asked(reading(subject, question.given, question.target), [])
    prompt = as_text(question.given)
    found = likeliest(subject, prompt)
    return Asked(of_generation(subject, prompt, found), [continued(found, subject.tokenizer)])


def searching(subject: Writer, question: Question) -> Writer:
    """Copy of an encoder-decoder's predictor with the beam size and length penalty of a question.

    It keeps as many hypotheses as its search waits for: the whole beam, or fewer where `decode.patience` is below 1.
    Where the question names no beam size, it is the model's own, or `WIDEST` if that is less.

    Raises:
        InputError: beam size or alpha is out of range.
    """
    beam = min(decoding_of(subject).beam, WIDEST) if question.beam is None else question.beam
    alpha = decoding_of(subject).alpha if question.alpha is None else question.alpha
    if not 1 <= beam <= WIDEST:
        raise InputError(f"a beam of {beam}: from 1 to {WIDEST}")
    if not 0 <= alpha <= 10:
        raise InputError(f"alpha = {alpha}: from 0 to 10")
    patience = decoding_of(subject).patience or 1
    return subject.with_options(beam=beam, alpha=alpha, n_best=min(beam, ceil(patience * beam)))
