"""Look into a model with one text, image or audio: answers, beam search, logit lens and trace of the forward pass.

The server, exported pages and notebooks all show an `Inspection`. The answers of all predictors have one form: options
with probabilities or scores, best first, such as translations of a sentence, words for each gap, the classes of a text.

T tokens, V the size of the vocabulary.
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
    likeliest,
    model_of,
    of_generation,
    of_output,
    reading,
)
from heedful.inspector.capture.recorder import Head, recording, switched_off
from heedful.inspector.capture.sources import (
    Input,
    Writer,
    as_text,
    check_length,
    writing,
)
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import Trace, traced
from heedful.inspector.measures.beam_search import BeamLog, ReferencePath, search_log
from heedful.inspector.measures.logits import Lens, lens, speaks
from heedful.nn.attention import Attention
from heedful.predictors.captioner import Captioner
from heedful.predictors.generator import Generator
from heedful.predictors.outputs import Answer, Option
from heedful.predictors.transcriber import Transcriber
from heedful.predictors.translator import Translator
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer import EOS, Tokenizer

MAX_ATTENTION_BYTES = 2_000_000_000  # of all heads in a look
MAX_BEAM = 20  # of a logged search: the candidates of a step grow with its square
CANDIDATES = 10  # words for each gap, and neighbours of each word


@dataclass(frozen=True, kw_only=True)
class Question:
    """Input of a look into a model: the text, image or audio, and settings of search and ablation.

    Attributes:
        text: the input text; or the name of the image or audio, for people to read: no file is opened by it.
        file: content of the file of an image or audio; None: the model reads the text.
        target: the output that the model is given, or the second text of a pair; None: the model's own output.
        reference: reference translation, followed through the beam search.
        prefix: text that the translation has to begin with.
        beam: beam size; None: as in the model's settings.
        alpha: exponent of the length penalty; None: as in the model's settings.
        off: attention heads that are switched off.
        way: how heads are switched off, one of `heedful.inspector.capture.recorder.WAYS`.
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
        """Question as JSON values, without the content of a file."""
        return asdict(replace(self, file=None))


@dataclass(frozen=True)
class Inspection:
    """Result of a look into a model: answers, trace of the forward pass, logit lens and log of the beam search."""

    question: Question
    forward: ForwardPass  # that was recorded
    trace: Trace
    answers: list[Answer]  # the model's outputs, or the target that the model was given
    lens: Lens | None  # None if the model predicts no tokens
    log: BeamLog | None = None  # of a translator's beam search
    reference: ReferencePath | None = None
    unknown: list[str] = field(default_factory=list)  # words that the vocabulary lacks, so that the model reads <unk>


def look(subject: Any, question: Question, keep: Collection[str] = ("*",)) -> Inspection:
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
    with recording(model_of(subject), edits=edits):
        try:
            reply = ask(subject, question)
        except InputError as error:
            if question.file is None:
                raise
            raise InputError(f"{question.text}: {error}") from error
    forward = reply.forward
    check_size(forward)
    trace = traced(forward, keep, edits)
    if broken := next((name for name, values in trace.tensors.items() if np.isnan(values).any()), None):
        raise RunError(f"{broken} is not a number (NaN): the model's weights are damaged or its training diverged")
    return Inspection(
        question,
        forward,
        trace,
        answers=reply.answers or target_answers(question, forward, trace),
        lens=lens(forward.model, trace) if speaks(forward.model) else None,
        log=reply.log,
        reference=reply.reference,
        unknown=unknown(subject, question),
    )


def check_size(forward: ForwardPass) -> None:
    """Refuse a forward pass whose attention does not fit into memory: scores, bias and weights grow with the square."""
    lengths = {name: len(line.read.ids) for name, line in forward.lines.items()}
    needed = 0
    for name, tap in taps(forward.model).items():
        if name.endswith((".score", ".attn")) and isinstance(tap.module, Attention):
            queries, keys = (lengths[str(axis.line).split(".")[0]] for axis in tap.axes[1:])
            needed += 4 * tap.module.heads * queries * keys
    if needed > MAX_ATTENTION_BYTES:
        raise InputError(
            f"{max(lengths.values()):,} positions need {needed / 1e9:,.1f} GB for the attention of all heads, and a "
            f"look takes {MAX_ATTENTION_BYTES / 1e9:g} GB; give a shorter text or sound, or a smaller picture"
        )


def target_answers(question: Question, forward: ForwardPass, trace: Trace) -> list[Answer]:
    """The target of a question as an answer with the model's log-probabilities; empty without a target."""
    target = forward.target
    if question.target is None or target is None or "logits" not in trace:
        return []
    log_probs = torch.from_numpy(trace.tensors["logits"]).log_softmax(-1)  # T V
    of_tokens = log_probs.gather(-1, torch.tensor(target.ids)[:, None])[:, 0]
    return [Answer([Option(question.target, pieces=tuple(target.labels), log_probs=tuple(of_tokens.tolist()))])]


def unknown(subject: Any, question: Question) -> list[str]:
    """List the words of a question that the model's vocabulary lacks (<unk>), each word once."""
    lists = [] if question.file is not None else [subject.unknown(question.text.strip())]
    outputs = (question.target, question.reference, question.prefix)
    lists += [subject.tokenizers.target.unknown(text) for text in outputs if text]
    return list(dict.fromkeys(word for words in lists for word in words))


class Reply(NamedTuple):
    """A predictor's answers, its forward pass to record, and, if it searched, the log and the reference's path."""

    forward: ForwardPass
    answers: list[Answer]
    log: BeamLog | None = None
    reference: ReferencePath | None = None


def ask(subject: Any, question: Question) -> Reply:
    """Run a predictor on a question: return its answers and the forward pass to record."""
    match subject:
        case Translator() | Captioner() | Transcriber():
            return ask_writer(subject, question)
        case Generator() if question.target is None:
            prompt = as_text(question.input)
            generation = likeliest(subject, prompt)
            pieces = tuple(subject.tokenizer.pieces(generation.tokens))
            log_probs = tuple(generation.token_scores[: len(pieces)])
            complete = generation.reason != "length"
            option = Option(generation.text, pieces=pieces, log_probs=log_probs, complete=complete)
            return Reply(of_generation(subject, prompt, generation), [Answer([option])])
    forward = reading(subject, question.input, question.target)
    return Reply(forward, subject.ranked_options(question.input, question.target))


def ask_writer(subject: Writer, question: Question) -> Reply:
    """Search for an output with the settings of a question, or take its target for the output."""
    prepared = writing(searching(subject, question), question.input)
    tokenizer = prepared.tokenizer
    if question.target is not None:
        return Reply(of_output(prepared, tokenizer.encode(question.target)), [])
    if question.reference is not None:
        check_length(tokenizer.encode(question.reference), prepared.longest, "a reference")
    log, path = search_log(prepared, question.reference, question.prefix)
    hypotheses = log.replay()
    answer = Answer([hypothesis_option(hypothesis, tokenizer) for hypothesis in hypotheses])
    return Reply(of_output(prepared, hypotheses[0].tokens), [answer], log, path)


def hypothesis_option(hypothesis: Hypothesis, tokenizer: Tokenizer) -> Option:
    tokens = [*hypothesis.tokens, EOS] if hypothesis.complete else hypothesis.tokens
    return Option(
        tokenizer.decode(hypothesis.tokens),
        score=hypothesis.score,
        pieces=tuple(tokenizer.pieces(tokens)),
        log_probs=tuple(hypothesis.token_scores),
        complete=hypothesis.complete,
    )


def searching(subject: Writer, question: Question) -> Writer:
    """Copy of an encoder-decoder's predictor with the beam size and length penalty of a question.

    Where the question names no beam size, it is the model's own, or `MAX_BEAM` if that is less.
    """
    config = subject.config
    beam = min(config.beam, MAX_BEAM) if question.beam is None else question.beam
    alpha = config.alpha if question.alpha is None else question.alpha
    if not 1 <= beam <= MAX_BEAM:
        raise InputError(f"a beam of {beam}: from 1 to {MAX_BEAM}")
    if not 0 <= alpha <= 10:
        raise InputError(f"alpha = {alpha}: from 0 to 10")
    # As many hypotheses as the search waits for: the whole beam, or fewer where the patience is below 1.
    n_best = min(beam, ceil((config.patience or 1) * beam))
    return subject.with_options(beam=beam, alpha=alpha, n_best=n_best)
