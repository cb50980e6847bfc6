"""Minimal pairs that measure bias: two texts that differ in one word, two forms, and the model's preference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import ForwardPass, of_continuation, of_row, of_translation
from heedful.inspector.capture.head_masks import Head
from heedful.inspector.capture.recorder import recording
from heedful.inspector.measures.teacher_forcing import gap_log_probs, log_probs, output
from heedful.metrics.bootstrap import bootstrap_interval
from heedful.predictors.filler import GAP, Filler
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import EOS, UNK
from heedful.wording import counted

KINDS = ("pair", "control")
COLUMNS = ("text A", "text B", "form A", "form B", "pair or control")


@dataclass(frozen=True)
class Contrast:
    """Minimal pair from one line of a list: two source texts and two forms.

    Attributes:
        line: number of the line, from 1.
        sources: source texts A and B.
        forms: forms A and B, the outputs to compare.
        kind: one of `KINDS`, "pair" or "control".
    """

    line: int
    sources: tuple[str, str]
    forms: tuple[str, str]
    kind: str


def contrasts(lines: Iterable[str]) -> list[Contrast]:
    """Read a list of minimal pairs: lines of `COLUMNS` separated by tabs, without blank lines and comments (#).

    Raises:
        InputError: a line has another form, or the list is empty; the message has the number of the line.
    """
    found = [contrast(number, line.rstrip("\r\n")) for number, line in enumerate(lines, 1) if says_something(line)]
    if not found:
        raise InputError(f"there are no lines; each has, with tabs between them, {', '.join(COLUMNS)}")
    return found


def says_something(line: str) -> bool:
    """True if a line of a list of minimal pairs is neither blank nor a comment (#)."""
    return bool(line.strip()) and not line.startswith("#")


def contrast(number: int, line: str) -> Contrast:
    """Parse one line of a list of minimal pairs, in columns separated by tabs.

    Raises:
        InputError: the line does not have five filled columns, has an unknown kind, or both forms are equal.
    """
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


Both = tuple[float, float]

FEWEST = 6  # lines that support a 95 % interval: a two-sided sign test of fewer cannot reach p = 0.05


@dataclass(frozen=True)
class Shift:
    """Result of a minimal pair: a model's log-probabilities of both forms, its preferences, and their shift.

    Attributes:
        contrast: the minimal pair.
        scores: log P of form A and of form B, given source A; and given source B.
        preferences: log P(form A) - log P(form B), given source A and given source B.
        shift: preference given source A minus preference given source B.
        attention: attention weight from the first target position where the forms differ to the tokens of each source
            that the other source lacks; None if the model is no translator or the sources are equal.
    """

    contrast: Contrast
    scores: tuple[Both, Both]
    preferences: Both
    shift: float
    attention: Both | None = None


class MeanShift(NamedTuple):
    """Mean over minimal pairs, with the bounds of its 95 % bootstrap interval; None for too few pairs."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Summary:
    """Statistics of the shifts of minimal pairs of one kind.

    Attributes:
        count: number of minimal pairs.
        shift: mean shift, with its 95 % bootstrap interval.
        size: mean of |shift|, with its 95 % bootstrap interval. Neither has an interval if `count` is below `FEWEST`.
        sided: number of minimal pairs where source A prefers form A and source B prefers form B.
    """

    count: int
    shift: MeanShift
    size: MeanShift
    sided: int


def shifts(subject: Any, found: Iterable[Contrast], head: Head | None = None) -> Iterator[Shift]:
    """Score minimal pairs with a model, one after another.

    Args:
        subject: a translator; a generator, whose forms are appended directly to the source, so that a form which
            begins a new word begins with a space; or a filler, whose sources have one gap for forms of one token.
        found: the minimal pairs.
        head: the cross-attention head to measure; None: the mean over all heads of all layers.

    Raises:
        InputError: `subject` is another predictor, has no such head, or a text does not fit; the message names the line
            of the minimal pair.
    """
    for one in found:
        try:
            given_a, given_b = (forced(subject, source, one.forms) for source in one.sources)
            attention = attention_to_swap(subject, one, head)
        except InputError as error:
            raise InputError(f"line {one.line}: {error}") from error
        preferences = given_a[0] - given_a[1], given_b[0] - given_b[1]
        yield Shift(one, (given_a, given_b), preferences, preferences[0] - preferences[1], attention)


def summaries(found: Sequence[Shift]) -> Mapping[str, Summary]:
    """Summarise the shifts of minimal pairs by kind, "pair" and "control"; a kind without lines is left out."""
    groups = {kind: [one for one in found if one.contrast.kind == kind] for kind in KINDS}
    return {kind: summary(group) for kind, group in groups.items() if group}


def summary(found: Sequence[Shift]) -> Summary:
    """Compute the statistics of the shifts of some minimal pairs."""
    values = np.array([one.shift for one in found])
    return Summary(
        len(found),
        mean_shift(values),
        mean_shift(np.abs(values)),
        sum(a > 0 > b for a, b in (one.preferences for one in found)),
    )


def mean_shift(values: np.ndarray) -> MeanShift:
    """Compute the mean of some shifts, and its interval if they are enough for one."""
    if len(values) < FEWEST:
        return MeanShift(float(values.mean()))
    return MeanShift(*bootstrap_interval(lambda chosen: values[chosen].mean(), len(values)))


@singledispatch
def forced(subject: Any, source: str, forms: tuple[str, str]) -> Both:
    """Log-probabilities of both forms of a minimal pair given a source text, each summed over the form's tokens."""
    del source, forms
    raise InputError(
        f"minimal pairs are for models that write or fill gaps, and a {type(subject).__name__} does neither; "
        "compare its answers to both texts instead"
    )


@forced.register
def _(subject: Translator, source: str, forms: tuple[str, str]) -> Both:
    a, b = (sum(log_probs(of_form(subject, source, form))) for form in forms)
    return a, b


@forced.register
def _(subject: Generator, source: str, forms: tuple[str, str]) -> Both:
    read = subject.tokenizer.encode(source)
    rows = ([*read, *subject.tokenizer.encode_continuation(form)] for form in forms)
    a, b = (sum(log_probs(known(of_continuation(subject, row)))[len(read) - 1 :]) for row in rows)
    return a, b


@forced.register
def _(subject: Filler, source: str, forms: tuple[str, str]) -> Both:
    reading = known(of_row(subject.model, subject.tokenizer, subject.encode(source)))
    gaps = gap_log_probs(subject, reading)
    if len(gaps) != 1:
        raise InputError(f"there are {len(gaps)} gaps in {source!r}; minimal pairs have one")
    a, b = (float(gaps[0, token_in_gap(subject, source, form)]) for form in forms)
    return a, b


def of_form(subject: Translator, source: str, form: str) -> ForwardPass:
    """Forward pass of a translator over a source, with a form of a minimal pair and <eos> as its translation."""
    return known(of_translation(subject, source.strip(), subject.tokenizers.target.encode(form.strip())))


def known(reading: ForwardPass) -> ForwardPass:
    """Check that a forward pass contains no <unk>, and return the pass.

    Raises:
        InputError: there is an <unk> among the tokens, whose probability says nothing about the word.
    """
    for line in reading.lines.values():
        for pieces in (line.read, line.written or line.read):
            if UNK in pieces.ids:
                raise InputError(f"the model lacks the word that is <unk> in {' '.join(pieces.words)!r}")
    return reading


def token_in_gap(subject: Filler, source: str, form: str) -> int:
    """Token id of a form of a minimal pair in the gap of a masked text.

    Raises:
        InputError: the form is not exactly one token of the vocabulary.
    """
    before = GAP.split(source)[0]
    space = " " * GAP.findall(source)[0].startswith(" ")
    tokenizer = subject.tokenizer
    ids = tokenizer.encode_continuation(space + form.strip()) if before else tokenizer.encode(form.strip())
    if len(ids) != 1 or UNK in ids:
        raise InputError(f"{form.strip()!r} is {len(ids)} tokens ({' '.join(tokenizer.pieces(ids))}); a gap holds one")
    return ids[0]


def attention_to_swap(subject: Any, one: Contrast, head: Head | None) -> Both | None:
    """Attention weight on the changed source tokens for a minimal pair, as in `Shift.attention`.

    The forward pass uses form A: up to the position where the forms differ, both forms give the same pass.
    """
    if not isinstance(subject, Translator) or one.sources[0].strip() == one.sources[1].strip():
        return None
    encode = subject.tokenizers.target.encode
    rows = [[*encode(form.strip()), EOS] for form in one.forms]
    query = in_common(*rows)
    if rows[0] == rows[1]:
        raise InputError(f"the model writes both forms with the same tokens: {one.forms[0]!r}")
    readings = [of_form(subject, source, one.forms[0]) for source in one.sources]
    swapped = apart(*(reading.lines["src"].read.ids for reading in readings))
    a, b = (attention_at(reading, query, keys, head) for reading, keys in zip(readings, swapped, strict=True))
    return a, b


def attention_at(reading: ForwardPass, query: int, keys: slice, head: Head | None) -> float:
    """Attention weight of one query position on some keys, for one cross-attention head or as the mean of all heads.

    Raises:
        InputError: there is no such head, or the head is not in cross-attention.
    """
    if head and not head.block.endswith(".cross"):
        raise InputError(f"{head.block} does not look at the source; choose a head such as those of dec.0.cross")
    with recording(reading.model, keep=[f"{head.block if head else 'dec.*.cross'}.attn"]) as kept:
        output(reading)
    weights = torch.stack([tensor[0, :, query, keys].float().sum(-1) for tensor in kept.values()])
    if head is None:
        return float(weights.mean())
    if not 0 <= head.number < weights.size(1):
        raise InputError(f"head {head.number}: {head.block} has {weights.size(1)}, counted from 0")
    return float(weights[0, head.number])


def in_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix of two rows of token ids."""
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def apart(a: Sequence[int], b: Sequence[int]) -> tuple[slice, slice]:
    """Slices of two rows of token ids that differ: what lies between the common prefix and the common suffix."""
    begin = in_common(a, b)
    end = min(in_common(a[::-1], b[::-1]), len(a) - begin, len(b) - begin)
    return slice(begin, len(a) - end), slice(begin, len(b) - end)
