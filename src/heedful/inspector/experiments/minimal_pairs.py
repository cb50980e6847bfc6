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
MIN_LINES = 6  # for a 95% interval: a two-sided sign test with fewer cannot reach p = 0.05


@dataclass(frozen=True)
class Contrast:
    """Minimal pair from one line of a list: two source texts and two forms, the outputs to compare."""

    line: int  # number of the line, from 1
    sources: tuple[str, str]
    forms: tuple[str, str]
    kind: str  # one of `KINDS`


def contrasts(lines: Iterable[str]) -> list[Contrast]:
    """Read a list of minimal pairs: lines of tab-separated `COLUMNS`; blank lines and comments (#) are skipped."""
    pairs, columns = [], ", ".join(COLUMNS)
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.rstrip("\r\n").split("\t")
        if len(cells) != len(COLUMNS):
            raise InputError(f"line {number}: has {counted(len(cells), 'columns')} instead of 5: {columns}")
        for name, cell in zip(COLUMNS, cells, strict=True):
            if not cell.strip():
                raise InputError(f"line {number}: {name} is empty")
        source_a, source_b, form_a, form_b, kind = cells
        if kind.strip() not in KINDS:
            raise InputError(f"line {number}: the kind must be {' or '.join(KINDS)}, not {kind.strip()!r}")
        if form_a.strip() == form_b.strip():
            raise InputError(f"line {number}: the two forms are the same; give two different ones")
        pairs.append(Contrast(number, (source_a, source_b), (form_a, form_b), kind.strip()))
    if not pairs:
        raise InputError(f"the list is empty; each line needs these columns, separated by tabs: {columns}")
    return pairs


@dataclass(frozen=True)
class Shift:
    """Result of a minimal pair: a model's log-probabilities of both forms, its preferences, and their shift.

    `attention` is measured at the first target position at which the forms differ: for each source, the weight on the
    tokens that differ from the other source. It is None if the model is not a translator or the sources are equal.
    """

    contrast: Contrast
    scores: tuple[Both, Both]  # log P of form A and of form B, given source A; and given source B
    preferences: Both  # log P(form A) - log P(form B), given source A and given source B
    shift: float  # preference given source A minus preference given source B
    attention: Both | None = None


class MeanShift(NamedTuple):
    """Mean over minimal pairs, with its 95% bootstrap interval, if there are `MIN_LINES` pairs or more."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Summary:
    """Statistics of the shifts of minimal pairs of one kind."""

    count: int  # of minimal pairs
    shift: MeanShift
    size: MeanShift  # of |shift|
    sided: int  # number of pairs for which the model prefers form A given source A, and form B given source B


def shifts(subject: Any, pairs: Iterable[Contrast], head: Head | None = None) -> Iterator[Shift]:
    """Score minimal pairs with a model, one after another.

    Args:
        subject: A translator; a generator, for which forms continue the source directly, so that a form for a new word
            starts with a space; or a filler, for which sources have one gap for forms of one token.
        pairs: The minimal pairs.
        head: The cross-attention head to measure; None for the mean over all heads of all layers.
    """
    for pair in pairs:
        try:
            after_a, after_b = (form_log_probs(subject, source, pair.forms) for source in pair.sources)
            attention = attention_to_swap(subject, pair, head)
        except InputError as error:
            raise InputError(f"line {pair.line}: {error}") from error
        # A difference of differences: the general frequency of a form cancels out; the effect of the source remains.
        preferences = after_a[0] - after_a[1], after_b[0] - after_b[1]
        yield Shift(pair, (after_a, after_b), preferences, preferences[0] - preferences[1], attention)


def summaries(results: Sequence[Shift]) -> Mapping[str, Summary]:
    """Summarise the shifts of minimal pairs by kind, "pair" and "control"; a kind without lines is left out."""

    def mean_shift(values: np.ndarray) -> MeanShift:
        if len(values) < MIN_LINES:
            return MeanShift(float(values.mean()))
        return MeanShift(*bootstrap_interval(lambda sample: values[sample].mean(), len(values)))

    groups = {kind: [shift for shift in results if shift.contrast.kind == kind] for kind in KINDS}
    by_kind = {}
    for kind, group in groups.items():
        if group:
            values = np.array([shift.shift for shift in group])
            sided = sum(a > 0 > b for a, b in (shift.preferences for shift in group))
            by_kind[kind] = Summary(len(group), mean_shift(values), mean_shift(np.abs(values)), sided)
    return by_kind


def form_log_probs(subject: Any, source: str, forms: tuple[str, str]) -> Both:
    """Compute the log-probability of each form of a minimal pair given a source: the sum over the tokens of the form.

    For a translator, these include <eos>.
    """
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
                raise InputError(f"{source!r} has {len(gaps)} gaps; give a text with exactly one")
            a, b = (float(gaps[0, token_in_gap(subject, source, form)]) for form in forms)
        case _:
            raise InputError(
                f"minimal pairs are for models that write or fill gaps, not for a {type(subject).__name__}; "
                "compare its answers to both texts instead"
            )
    return a, b


def of_form(subject: Translator, source: str, form: str) -> ForwardPass:
    """Prepare the pass of a translator over a source, with a form of a minimal pair as its translation."""
    prepared = writing(subject, source.strip())
    return without_unknown(of_output(prepared, prepared.tokenizer.encode(form.strip())))


def without_unknown(forward: ForwardPass) -> ForwardPass:
    """Return a forward pass, but reject <unk> among its tokens: the probability of <unk> is not that of the word."""
    for line in forward.lines.values():
        for pieces in (line.read, line.said):
            if UNK in pieces.ids:
                words = " ".join(pieces.words)
                raise InputError(f"{words!r} has a word outside the model's vocabulary, <unk>; use another one")
    return forward


def token_in_gap(subject: Filler, source: str, form: str) -> int:
    """Return the token id of a form in the gap of a masked text; reject a form that is not exactly one token."""
    before = GAP.split(source)[0]
    # A gap includes the space before it, without which the form would be another token.
    space = " " * GAP.findall(source)[0].startswith(" ")
    tokenizer = subject.tokenizer
    ids = tokenizer.encode_continuation(space + form.strip()) if before else tokenizer.encode(form.strip())
    if len(ids) != 1 or UNK in ids:
        pieces = " ".join(tokenizer.pieces(ids))
        raise InputError(
            f"{form.strip()!r} is {counted(len(ids), 'tokens')} ({pieces}), but a gap takes one known token"
        )
    return ids[0]


def attention_to_swap(subject: Any, pair: Contrast, head: Head | None) -> Both | None:
    """Measure the attention weight on the changed source tokens of a minimal pair, as in `Shift.attention`."""
    if not isinstance(subject, Translator) or pair.sources[0].strip() == pair.sources[1].strip():
        return None
    encode = subject.tokenizers.target.encode
    rows = [[*encode(form.strip()), EOS] for form in pair.forms]
    query = common_prefix(*rows)
    if rows[0] == rows[1]:
        raise InputError(f"the model writes both forms with the same tokens: {pair.forms[0]!r}")
    # Up to the position where the forms differ, the passes of both are equal, so form A is enough.
    passes = [of_form(subject, source, pair.forms[0]) for source in pair.sources]
    swapped = differing(*(forward.lines["src"].read.ids for forward in passes))
    a, b = (attention_at(forward, query, keys, head) for forward, keys in zip(passes, swapped, strict=True))
    return a, b


def attention_at(forward: ForwardPass, query: int, keys: slice, head: Head | None) -> float:
    """Measure the attention weight of a query position on some keys, for a cross-attention head or the mean of all."""
    if head and not head.block.endswith(".cross"):
        raise InputError(f"{head.block} does not attend to the source; choose a head in a sublayer such as dec.0.cross")
    with recording(forward.model, keep=[f"{head.block if head else 'dec.*.cross'}.attn"]) as recorded:
        output(forward)
    weights = torch.stack([tensor[0, :, query, keys].float().sum(-1) for tensor in recorded.values()])  # L H
    if head is None:
        return float(weights.mean())
    if not 0 <= head.number < weights.size(1):
        raise InputError(f"head {head.number}: {head.block} has {counted(weights.size(1), 'heads')}, counted from 0")
    return float(weights[0, head.number])


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def differing(a: Sequence[int], b: Sequence[int]) -> tuple[slice, slice]:
    """Return the slices of two rows of token ids between their common prefix and their common suffix."""
    begin = common_prefix(a, b)
    # Where tokens repeat, the common suffix must not overlap the common prefix.
    end = min(common_prefix(a[::-1], b[::-1]), len(a) - begin, len(b) - begin)
    return slice(begin, len(a) - end), slice(begin, len(b) - end)
