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
    """Yield the variants of a pair whose source differs from the original, and whose sides are not empty.

    A hash of the pair decides which variants it has, independently of other pairs and of their order.
    """
    for name, change in CHANGES.items():
        share = getattr(config, name)
        # With a key for each variant, the choices are independent: a pair may have one variant, several or none.
        if share and pair_hash(pair.source, pair.target, name) < share * 2**64:
            source, target = change(pair.source, pair.target)
            if source.strip() and target.strip() and source != pair.source:
                yield Variant(pair.line, source, target)
