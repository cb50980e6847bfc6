"""Minimal pairs that measure bias: two texts that differ in one word, two forms, and the model's preference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import (
    ForwardPass,
    gap_log_probs,
    log_probs,
    of_continuation,
    of_inputs,
    of_output,
    output,
)
from heedful.inspector.capture.recorder import Head, recording
from heedful.inspector.capture.sources import writing
from heedful.metrics.bootstrap import bootstrap_interval
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.generator import Generator
from heedful.predictors.text_predictor import row_inputs
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import EOS, UNK
from heedful.wording import counted

Both = tuple[float, float]  # of form A and of form B, or given source A and given source B

KINDS = ("pair", "control")
COLUMNS = ("text A", "text B", "form A", "form B", "pair or control")
MIN_LINES = 6  # that support a 95 % interval: a two-sided sign test of fewer cannot reach p = 0.05


@dataclass(frozen=True)
class Contrast:
    """Minimal pair from one line of a list: two source texts and two forms, the outputs to compare."""

    line: int  # number of the line, from 1
    sources: tuple[str, str]
    forms: tuple[str, str]
    kind: str  # one of `KINDS`


def contrasts(lines: Iterable[str]) -> list[Contrast]:
    """Read a list of minimal pairs: lines of `COLUMNS` separated by tabs, without blank lines and comments (#).

    Raises:
        InputError: a line has another form, or the list is empty; the message has the number of the line.
    """
    pairs = [
        contrast(number, line.rstrip("\r\n"))
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    if not pairs:
        raise InputError(f"there are no lines; each has, with tabs between them, {', '.join(COLUMNS)}")
    return pairs


def contrast(number: int, line: str) -> Contrast:
    """Parse one line of a list of minimal pairs, in columns separated by tabs."""
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        columns = ", ".join(COLUMNS)
        raise InputError(f"line {number} has {counted(len(cells), 'columns')}, and not 5: {columns}")
    for name, cell in zip(COLUMNS, cells, strict=True):
        if not cell.strip():
            raise InputError(f"line {number}: {name} is empty")
    source_a, source_b, form_a, form_b, kind = cells
    if kind.strip() not in KINDS:
        raise InputError(f"line {number}: the kind is {' or '.join(KINDS)}, not {kind.strip()!r}")
    if form_a.strip() == form_b.strip():
        raise InputError(f"line {number}: the two forms are the same, so that there is nothing to prefer")
    return Contrast(number, (source_a, source_b), (form_a, form_b), kind.strip())


@dataclass(frozen=True)
class Shift:
    """Result of a minimal pair: a model's log-probabilities of both forms, its preferences, and their shift.

    `attention` is the weight from the first target position where the forms differ to the tokens of each source that
    the other source lacks; None if the model is not a translator or the sources are equal.
    """

    contrast: Contrast
    scores: tuple[Both, Both]  # log P of form A and of form B, given source A; and given source B
    preferences: Both  # log P(form A) - log P(form B), given source A and given source B
    shift: float  # preference given source A minus preference given source B
    attention: Both | None = None


class MeanShift(NamedTuple):
    """Mean over minimal pairs, with the bounds of its 95 % bootstrap interval; None for too few pairs."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Summary:
    """Statistics of the shifts of minimal pairs of one kind; below `MIN_LINES` pairs, means have no interval."""

    count: int  # of minimal pairs
    shift: MeanShift
    size: MeanShift  # of |shift|
    sided: int  # pairs where source A prefers form A and source B prefers form B


def shifts(subject: Any, pairs: Iterable[Contrast], head: Head | None = None) -> Iterator[Shift]:
    """Score minimal pairs with a model, one after another.

    Args:
        subject: a translator; a generator, whose forms are appended directly to the source, so that a form which
            begins a new word begins with a space; or a filler, whose sources have one gap for forms of one token.
        pairs: the minimal pairs.
        head: the cross-attention head to measure; None: the mean over all heads of all layers.

    Raises:
        InputError: `subject` is another predictor, has no such head, or a text does not fit; the message names the line
            of the minimal pair.
    """
    for pair in pairs:
        try:
            given_a, given_b = (form_log_probs(subject, source, pair.forms) for source in pair.sources)
            attention = attention_to_swap(subject, pair, head)
        except InputError as error:
            raise InputError(f"line {pair.line}: {error}") from error
        preferences = given_a[0] - given_a[1], given_b[0] - given_b[1]
        yield Shift(pair, (given_a, given_b), preferences, preferences[0] - preferences[1], attention)


def summaries(results: Sequence[Shift]) -> Mapping[str, Summary]:
    """Summarise the shifts of minimal pairs by kind, "pair" and "control"; a kind without lines is left out."""
    groups = {kind: [shift for shift in results if shift.contrast.kind == kind] for kind in KINDS}
    return {kind: summary(group) for kind, group in groups.items() if group}


def summary(results: Sequence[Shift]) -> Summary:
    values = np.array([shift.shift for shift in results])
    sided = sum(a > 0 > b for a, b in (shift.preferences for shift in results))
    return Summary(len(results), mean_shift(values), mean_shift(np.abs(values)), sided)


def mean_shift(values: np.ndarray) -> MeanShift:
    """Compute the mean of some shifts, and its interval if they are enough for one."""
    if len(values) < MIN_LINES:
        return MeanShift(float(values.mean()))
    return MeanShift(*bootstrap_interval(lambda sample: values[sample].mean(), len(values)))


def form_log_probs(subject: Any, source: str, forms: tuple[str, str]) -> Both:
    """Log-probabilities of both forms of a minimal pair given a source text, each summed over the form's tokens."""
    match subject:
        case Translator():
            a, b = (sum(log_probs(of_form(subject, source, form))) for form in forms)
        case Generator():
            prompt = subject.tokenizer.encode(source)
            rows = ([*prompt, *subject.tokenizer.encode_continuation(form)] for form in forms)
            # Row t of a forward pass predicts token t + 1.
            a, b = (sum(log_probs(without_unknown(of_continuation(subject, row)))[len(prompt) - 1 :]) for row in rows)
        case Filler():
            forward = without_unknown(of_inputs(subject, row_inputs(subject.model, subject.encode(source))))
            gaps = gap_log_probs(subject, forward)
            if len(gaps) != 1:
                raise InputError(f"there are {len(gaps)} gaps in {source!r}; minimal pairs have one")
            a, b = (float(gaps[0, token_in_gap(subject, source, form)]) for form in forms)
        case _:
            raise InputError(
                f"minimal pairs are for models that write or fill gaps, and a {type(subject).__name__} does neither; "
                "compare its answers to both texts instead"
            )
    return a, b


def of_form(subject: Translator, source: str, form: str) -> ForwardPass:
    """Forward pass of a translator over a source, with a form of a minimal pair and <eos> as its translation."""
    prepared = writing(subject, source.strip())
    return without_unknown(of_output(prepared, prepared.tokenizer.encode(form.strip())))


def without_unknown(forward: ForwardPass) -> ForwardPass:
    """Refuse a forward pass with <unk> among its tokens, whose probability says nothing about the word."""
    for line in forward.lines.values():
        for pieces in (line.read, line.said):
            if UNK in pieces.ids:
                raise InputError(f"the model lacks the word that is <unk> in {' '.join(pieces.words)!r}")
    return forward


def token_in_gap(subject: Filler, source: str, form: str) -> int:
    """Token id of a form in the gap of a masked text; refuse a form that is not exactly one token."""
    before = GAP.split(source)[0]
    space = " " * GAP.findall(source)[0].startswith(" ")
    tokenizer = subject.tokenizer
    ids = tokenizer.encode_continuation(space + form.strip()) if before else tokenizer.encode(form.strip())
    if len(ids) != 1 or UNK in ids:
        raise InputError(f"{form.strip()!r} is {len(ids)} tokens ({' '.join(tokenizer.pieces(ids))}); a gap holds one")
    return ids[0]


def attention_to_swap(subject: Any, pair: Contrast, head: Head | None) -> Both | None:
    """Attention weight on the changed source tokens for a minimal pair, as in `Shift.attention`."""
    if not isinstance(subject, Translator) or pair.sources[0].strip() == pair.sources[1].strip():
        return None
    encode = subject.tokenizers.target.encode
    rows = [[*encode(form.strip()), EOS] for form in pair.forms]
    query = common_prefix(*rows)
    if rows[0] == rows[1]:
        raise InputError(f"the model writes both forms with the same tokens: {pair.forms[0]!r}")
    # Up to the position where the forms differ, both forms give the same pass.
    passes = [of_form(subject, source, pair.forms[0]) for source in pair.sources]
    swapped = differing(*(forward.lines["src"].read.ids for forward in passes))
    a, b = (attention_at(forward, query, keys, head) for forward, keys in zip(passes, swapped, strict=True))
    return a, b


def attention_at(forward: ForwardPass, query: int, keys: slice, head: Head | None) -> float:
    """Attention weight of one query position on some keys, for one cross-attention head or as the mean of all heads."""
    if head and not head.block.endswith(".cross"):
        raise InputError(f"{head.block} does not look at the source; choose a head such as those of dec.0.cross")
    with recording(forward.model, keep=[f"{head.block if head else 'dec.*.cross'}.attn"]) as recorded:
        output(forward)
    weights = torch.stack([tensor[0, :, query, keys].float().sum(-1) for tensor in recorded.values()])  # L H
    if head is None:
        return float(weights.mean())
    if not 0 <= head.number < weights.size(1):
        raise InputError(f"head {head.number}: {head.block} has {weights.size(1)}, counted from 0")
    return float(weights[0, head.number])


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix of two rows of token ids."""
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def differing(a: Sequence[int], b: Sequence[int]) -> tuple[slice, slice]:
    """Slices of two rows of token ids that differ: what is between the common prefix and the common suffix."""
    begin = common_prefix(a, b)
    end = min(common_prefix(a[::-1], b[::-1]), len(a) - begin, len(b) - begin)
    return slice(begin, len(a) - end), slice(begin, len(b) - end)
