"""Bag-of-words settings."""

from dataclasses import dataclass
from typing import Literal

from heedful.config.model import Poolers, TextModelConfig, Width


@dataclass(frozen=True, kw_only=True)
class BagOfWordsConfig(TextModelConfig):
    """Bag-of-words settings: the sum of word vectors or, with `pooling = "mean"`, their mean.

    A classifier without a pooler is linear in the word counts, or in the words' shares of the text. With
    `pooler = "dense"` it has one hidden layer (Iyyer et al. 2015).
    """

    architecture: str = "bag_of_words"
    family: Literal["encoder"] = "encoder"
    d_model: Width = 100
    """Size of the word vectors."""

    scale_embeddings: bool = False
    pooler: Poolers = "none"

    def shape(self) -> str:
        return f"{self.pooling or 'sum'} of word vectors, d_model {self.d_model}"
