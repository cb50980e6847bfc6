"""Heads switched off: what a translator says without them, and what that costs (Michel et al. 2019).

Attention shows where a model looks; only this shows what it needs.
"""

from collections.abc import Iterable, Iterator, Sequence

from heedful.decode.translator import Translator
from heedful.evaluate import Comparison, Scoring, paired_bootstrap
from heedful.inspector.capture.head_masks import Head, heads, switched_off
from heedful.inspector.capture.recorder import recording


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
