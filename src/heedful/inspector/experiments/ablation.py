"""Ablation of attention heads: a translator's output and its BLEU without some heads (Michel et al. 2019).

Attention weights show which tokens a model attends to; only ablation shows which heads it needs.
"""

from collections.abc import Iterable, Iterator, Sequence

from heedful.decode.translator import Translator
from heedful.evaluate import Comparison, Scoring, paired_bootstrap
from heedful.inspector.capture.head_masks import Head, heads, switched_off
from heedful.inspector.capture.recorder import recording


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
