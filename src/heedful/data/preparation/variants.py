"""Variants of training pairs, as if typed in haste: without final punctuation, in capitals, or in lower case."""

import string
from collections.abc import Callable, Iterator

from heedful.config.schema import VariantConfig
from heedful.data.preparation.filters import pair_hash
from heedful.data.readers.corpus import SentencePair

FINAL = string.whitespace + ".!?…。！？؟۔।"  # marks before a closing quotation mark are kept

Change = Callable[[str, str], tuple[str, str]]
CHANGES: dict[str, Change] = {  # by setting
    "unpunctuated": lambda source, target: (source.rstrip(FINAL), target.rstrip(FINAL)),
    "upper_case": lambda source, target: (source.upper(), target.upper()),
    "lower_case": lambda source, target: (source.lower(), target),
}


class Variant(SentencePair):
    """Sentence pair that was derived from another one."""


def variants(pair: SentencePair, config: VariantConfig) -> Iterator[Variant]:
    """Yield the variants of a pair that have a different source and text on both sides.

    A hash of the pair decides which variants it has, so that neither the order nor other pairs matter.
    """
    for name, change in CHANGES.items():
        share = getattr(config, name)
        # The key makes the choices of different variants independent: a pair may have one variant, several or none.
        if share and pair_hash(pair.source, pair.target, name) < share * 2**64:
            source, target = change(pair.source, pair.target)
            if source.strip() and target.strip() and source != pair.source:
                yield Variant(pair.line, source, target)
