"""Bag of words: text classifiers that ignore word order.

B batch, T tokens, D model.
"""

from jaxtyping import Float
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone, InputLayerType
from heedful.architectures.bag_of_words.settings import BagOfWordsConfig
from heedful.nn.masks import AttentionMask


class NoLayers(nn.Module):
    """Stack without layers: the hidden state of a token is its embedding."""

    def forward(self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: None = None) -> Float[Tensor, "B T D"]:
        del mask, cache  # the pooling excludes padding
        return x


class BagOfWords(Backbone[InputLayerType]):
    """Backbone without layers or positions: the hidden state of a token is its embedding, whatever the context."""

    causal = False
    pooling = "sum"

    def __init__(self, config: BagOfWordsConfig, embedding: InputLayerType) -> None:
        super().__init__(config, embedding, NoLayers())
