"""Inspection of a model on one text, image or audio: answers, beam search, logit lens and trace of the forward pass.

The server, exported pages and notebooks all show an `Inspection`. The answers of all predictors have the same form:
options with probabilities or scores, best first, such as translations of a sentence, words for each gap, or classes.

T tokens, V vocabulary.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.errors import InputError, RunError
from heedful.inspector.capture.forward_inputs import (
    ForwardPass,
    greedy_continuation,
    model_of,
    of_generation,
    of_output,
    reading,
)
from heedful.inspector.capture.recorder import Head, recording, switched_off
from heedful.inspector.capture.sources import Input, Writer, as_text, check_length, writing
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import Trace, traced
from heedful.inspector.measures.beam_search import BeamLog, ReferencePath, search_log
from heedful.inspector.measures.logits import Lens, has_lens, lens
from heedful.nn.attention import Attention
from heedful.predictors.captioner import Captioner
from heedful.predictors.generator import Generator
from heedful.predictors.outputs import Answer, Option
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import EOS

MAX_ATTENTION_BYTES = 2_000_000_000  # of all heads in an inspection
MAX_BEAM = 20  # of a logged search: the number of candidates per step grows with its square


@dataclass(frozen=True, kw_only=True)
class Question:
    """Input of an inspection: the text, image or audio, and the search and ablation settings.

    Attributes:
        text: The input text; or, only for display, the name of the image or audio file whose content is `file`.
        file: Content of an image or audio file; None if the model reads the text.
        target: The given output, or the second text of a pair; None for the model's own output.
        reference: Reference output, such as a translation, followed through the beam search.
        prefix: Required beginning of the output.
        beam: Beam size; None for the model's own, but at most `MAX_BEAM`.
        alpha: Exponent of the length penalty; None for the model's own.
        off: Attention heads that are switched off.
        way: How heads are switched off, one of `heedful.inspector.capture.recorder.WAYS`.
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
    def input(self) -> Input:
        """Input of the model: the text, or the content of the file."""
        return self.text if self.file is None else self.file

    def as_json(self) -> dict[str, Any]:
        """Return the question as JSON values, without the content of a file."""
        return asdict(replace(self, file=None))


@dataclass(frozen=True)
class Inspection:
    """Result of an inspection: answers, trace of the forward pass, logit lens and log of the beam search."""

    question: Question
    forward: ForwardPass
    trace: Trace
    answers: list[Answer]  # the model's outputs, or the given target
    lens: Lens | None  # None if the model does not predict tokens from a stack of blocks
    log: BeamLog | None = None  # of an encoder-decoder's beam search
    reference: ReferencePath | None = None
    unknown: list[str] = field(default_factory=list)  # words outside the vocabulary, which the model reads as <unk>


def look(subject: Any, question: Question, keep: Collection[str] = ("*",)) -> Inspection:
    """Run a predictor on a question, and record its answers, trace, logit lens and beam search.

    Args:
        subject: A predictor, as `heedful.load` returns it.
        question: The text or file, and the settings.
        keep: Names of taps to record, or patterns; the logit lens needs "*.ffn.resid".

    Raises:
        RunError: The model computes NaN.
    """
    if not question.text.strip():
        raise InputError("the text is empty; give one sentence")
    edits = switched_off(question.off, question.way)
    with recording(model_of(subject), edits=edits):
        try:
            reply = ask(subject, question)
        except InputError as error:
            if question.file is None:
                raise
            raise InputError(f"{question.text}: {error}") from error
    forward, answers = reply.forward, reply.answers
    check_size(forward)
    trace = traced(forward, keep, edits)
    if broken := next((name for name, values in trace.tensors.items() if np.isnan(values).any()), None):
        raise RunError(f"{broken} contains NaN: the model's weights are damaged or its training diverged")
    target = forward.target
    if not answers and question.target is not None and target is not None and "logits" in trace:
        # A given target is shown as an answer with the model's log-probabilities.
        log_probs = torch.from_numpy(trace.tensors["logits"]).log_softmax(-1)  # T V
        of_tokens = log_probs.gather(-1, torch.tensor(target.ids)[:, None])[:, 0]
        pieces = tuple(target.labels)
        answers = [Answer([Option(question.target, pieces=pieces, log_probs=tuple(of_tokens.tolist()))])]
    return Inspection(
        question,
        forward,
        trace,
        answers,
        lens=lens(forward.model, trace) if has_lens(forward.model) else None,
        log=reply.log,
        reference=reply.reference,
        unknown=unknown(subject, question),
    )


def check_size(forward: ForwardPass) -> None:
    """Reject a pass whose attention scores and weights, quadratic in the length, exceed `MAX_ATTENTION_BYTES`."""
    lengths = {name: len(line.read.ids) for name, line in forward.lines.items()}
    size = 0
    for name, tap in taps(forward.model).items():
        if name.endswith((".score", ".attn")) and isinstance(tap.module, Attention):
            queries, keys = (lengths[str(axis.line).split(".")[0]] for axis in tap.axes[1:])
            size += 4 * tap.module.heads * queries * keys
    if size > MAX_ATTENTION_BYTES:
        raise InputError(
            f"{max(lengths.values()):,} positions need {size / 1e9:,.1f} GB for the attention of all heads, but the "
            f"limit is {MAX_ATTENTION_BYTES / 1e9:g} GB; give a shorter text or audio, or a smaller image"
        )


def unknown(subject: Any, question: Question) -> list[str]:
    """List the words of a question that are not in the model's vocabulary (<unk>), each word once."""
    words = [] if question.file is not None else list(subject.unknown(question.text.strip()))
    for text in (question.target, question.reference, question.prefix):
        words += subject.tokenizers.target.unknown(text) if text else []
    return list(dict.fromkeys(words))


class Reply(NamedTuple):
    """A predictor's answers, the forward pass to record, and the log of its search with the path of a reference."""

    forward: ForwardPass
    answers: list[Answer]
    log: BeamLog | None = None
    reference: ReferencePath | None = None


def ask(subject: Any, question: Question) -> Reply:
    """Run a predictor on a question: return its answers and the forward pass to record."""
    match subject:
        case Translator() | Captioner() | Transcriber():
            return _ask_writer(subject, question)
        case Generator() if question.target is None:
            prompt = as_text(question.input)
            generation = greedy_continuation(subject, prompt)
            pieces = tuple(subject.tokenizer.pieces(generation.tokens))
            # The score of <eos>, which is not part of the text, is left out.
            log_probs = tuple(generation.token_scores[: len(pieces)])
            complete = generation.reason != "length"
            option = Option(generation.text, pieces=pieces, log_probs=log_probs, complete=complete)
            return Reply(of_generation(subject, prompt, generation), [Answer([option])])
    forward = reading(subject, question.input, question.target)
    return Reply(forward, subject.ranked_options(question.input, question.target))


def _ask_writer(subject: Writer, question: Question) -> Reply:
    """Search for an output with the settings of a question, or use its target as the output."""
    prepared = writing(with_settings(subject, question), question.input)
    tokenizer = prepared.tokenizer
    if question.target is not None:
        return Reply(of_output(prepared, tokenizer.encode(question.target)), [])
    if question.reference is not None:
        check_length(tokenizer.encode(question.reference), prepared.longest, "the reference")
    log, path = search_log(prepared, question.reference, question.prefix)
    hypotheses, options = log.replay(), []
    for hypothesis in hypotheses:
        # A complete hypothesis has a score for its <eos>: one piece per score.
        tokens = [*hypothesis.tokens, EOS] if hypothesis.complete else hypothesis.tokens
        option = Option(
            tokenizer.decode(hypothesis.tokens),
            score=hypothesis.score,
            pieces=tuple(tokenizer.pieces(tokens)),
            log_probs=tuple(hypothesis.token_scores),
            complete=hypothesis.complete,
        )
        options.append(option)
    return Reply(of_output(prepared, hypotheses[0].tokens), [Answer(options)], log, path)


def with_settings(subject: Writer, question: Question) -> Writer:
    """Return an encoder-decoder's predictor with the beam size and length penalty of a question.

    A question without a beam size uses the model's own, but at most `MAX_BEAM`.
    """
    config = subject.config
    beam = min(config.beam, MAX_BEAM) if question.beam is None else question.beam
    alpha = config.alpha if question.alpha is None else question.alpha
    if not 1 <= beam <= MAX_BEAM:
        raise InputError(f"beam = {beam}: must be from 1 to {MAX_BEAM}")
    if not 0 <= alpha <= 10:
        raise InputError(f"alpha = {alpha}: must be from 0 to 10")
    # As many hypotheses as the search waits for: the whole beam, or fewer if the patience is below 1.
    n_best = min(beam, ceil((config.patience or 1) * beam))
    return subject.with_options(beam=beam, alpha=alpha, n_best=n_best)
