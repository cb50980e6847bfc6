"""Model families, and the facts about them that are known before a model is built."""

from dataclasses import dataclass
from typing import Literal

FamilyName = Literal["encoder_decoder", "encoder", "decoder", "word_vectors"]


@dataclass(frozen=True)
class Family:
    """Facts about a model family.

    Attributes:
        sides: The sides that have a vocabulary: source and target, or only a source if there is one kind of text.
        layers: The keys of [model] that count the layers of a Transformer of this family.
        causal: True if there is one kind of text, in which a token sees only itself and the tokens before it.
        pooling: The hidden state that represents a whole text, if the recipe does not choose one.
    """

    sides: tuple[str, ...]
    layers: tuple[str, ...]
    causal: bool
    pooling: str

    @property
    def writes(self) -> bool:
        """True if a model writes text, one token at a time."""
        return self.pairs or self.causal

    @property
    def pairs(self) -> bool:
        """True if a model reads a source and writes a target."""
        return len(self.sides) > 1


FAMILIES: dict[str, Family] = {
    "encoder_decoder": Family(
        ("source", "target"), ("encoder_layers", "decoder_layers"), causal=False, pooling="first"
    ),
    "encoder": Family(("source",), ("encoder_layers",), causal=False, pooling="first"),
    "decoder": Family(("source",), ("decoder_layers",), causal=True, pooling="last"),
    "word_vectors": Family(("source",), (), causal=False, pooling="mean"),
}
