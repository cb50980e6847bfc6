"""Outputs that are texts, each with the one text that it should be, and exact match, which compares word for word."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from unicodedata import normalize

from heedful.evaluate.metrics import per_example
from heedful.evaluate.outputs import Outputs


@dataclass(frozen=True)
class Texts(Outputs):
    """Texts that a model wrote, and their references.

    Attributes:
        outputs: The texts.
        references: What each should be.
        language: The language of the references, as in "de"; some metrics cut text into words by it.
        lowercase: True if the model writes lower-cased text, so that case does not count.
        form: The normal form in which the model writes.
    """

    kind = "texts"
    columns = ("outputs", "references")

    outputs: Sequence[str]
    references: Sequence[str]
    language: str = ""
    lowercase: bool = False
    form: Literal["NFC", "NFKC"] = "NFC"

    @cached_property
    def compared(self) -> tuple[list[str], list[str]]:
        """Outputs and references as metrics compare them: in one normal form and, if so, in lower case."""
        texts = [[normalize(self.form, text) for text in side] for side in (self.outputs, self.references)]
        outputs, references = [[text.lower() for text in side] for side in texts] if self.lowercase else texts
        return outputs, references

    def pairs(self) -> list[tuple[str, str]]:
        """List each output with its reference, as metrics compare them."""
        return list(zip(*self.compared, strict=True))


def equal_words(texts: Texts) -> list[bool]:
    """True for each output that equals its reference word for word; spaces do not count."""
    return [output.split() == reference.split() for output, reference in texts.pairs()]


EXACT_MATCH = per_example(equal_words)
