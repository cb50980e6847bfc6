"""Heads switched off: what a translator says without them, and what that costs (Michel et al. 2019).

Attention shows where a model looks; only this shows what it needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.evaluate import Comparison, Scoring, paired_bootstrap
from heedful.inspect_.recorder import Edit, recording
from heedful.inspect_.taps import taps


@dataclass(frozen=True, order=True)
class Head:
    """One head.

    Attributes:
        block: as in the names of taps, such as "dec.1.cross".
        number: from 0.
    """

    block: str
    number: int


def heads(model: torch.nn.Module) -> list[Head]:
    """Every head of a model, in the order in which they compute."""
    return [
        Head(name.removesuffix(".attn"), number)
        for name, tap in taps(model).items()
        if name.endswith(".attn")
        for number in range(int(getattr(tap.module, "heads", 0)))
    ]


def silent(head: Head) -> dict[str, Edit]:
    """The head adds nothing."""
    return {f"{head.block}.z": zeroed(head.number)}


def even(head: Head) -> dict[str, Edit]:
    """The head looks at everything that it may see alike, whatever that is."""
    return {f"{head.block}.score": zeroed(head.number)}


WAYS = {"silent": silent, "even": even}


def zeroed(number: int) -> Edit:
    """Zeros for one head of (B H ...).

    Raises:
        InputError: when it is met by a block with fewer heads.
    """

    def edit(x: Tensor) -> Tensor:
        if number >= x.size(1):
            raise InputError(f"head {number}: the block has {x.size(1)}, counted from 0")
        x = x.clone()
        x[:, number] = 0
        return x

    return edit


def switched_off(off: Iterable[Head], way: str = "silent") -> dict[str, Edit]:
    """The edits that switch heads off.

    Args:
        off: the heads.
        way: one of `WAYS`.

    Raises:
        InputError: there is no such way.
    """
    if way not in WAYS:
        raise InputError(f"heads are switched off in one of these ways: {', '.join(WAYS)}; not {way}")
    edits: dict[str, Edit] = {}
    for head in off:
        for name, edit in WAYS[way](head).items():
            edits[name] = after(edits[name], edit) if name in edits else edit
    return edits


def after(first: Edit, second: Edit) -> Edit:
    """One edit, then another."""
    return lambda x: second(first(x))


def translations_without(
    translator: Translator, off: Iterable[Head], sources: Sequence[str], way: str = "silent"
) -> list[str]:
    """What becomes of sentences while some heads are switched off."""
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
    """How much worse BLEU becomes without some heads, with the interval of a paired bootstrap.

    Args:
        translator: the model, its tokenizers, and how it searches.
        off: the heads.
        sources: N sentences.
        references: their translations.
        way: one of `WAYS`.
        whole: what the model makes of the sources with all heads, if that is known already.
        language: of the references, such as "zh"; decides how BLEU cuts them into words.

    Raises:
        InputError: there are no sentences, or not as many references.
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
    """What each head of the model is worth, one after another. See `cost`."""
    if whole is None:
        whole = translator.translate(sources)
    for head in heads(translator.model):
        yield head, cost(translator, [head], sources, references, way, whole=whole, language=language)
