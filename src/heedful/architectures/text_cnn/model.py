"""Text CNN: one layer of convolutions with several kernel sizes, for text classification (Kim 2014).

B batch, T tokens, D model, H hidden size.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone
from heedful.architectures.text_cnn.settings import TextCNNConfig
from heedful.nn.embedding import Embedding, InputLayer
from heedful.nn.masks import AttentionMask
from heedful.nn.spacing import Spacing, centred_windows


class TextCNNStack(nn.Module):
    """Layer of parallel convolutions with ReLU, one per kernel size.

    Each window is centred on a token, with zeros beyond the ends of the text. In Kim (2014), windows are also centred
    outside the text.
    """

    parameter_kind = "convolutions"

    def __init__(self, config: TextCNNConfig) -> None:
        super().__init__()
        self.sizes = config.kernel_sizes
        self.convolutions = nn.ModuleList(nn.Linear(size * config.d_model, config.filters) for size in self.sizes)

    def forward(self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: None = None) -> Float[Tensor, "B T H"]:
        del cache
        # There are enough zeros between documents that even the widest kernel never covers tokens of two documents.
        spacing = Spacing(mask.padding_mask, mask.query_positions, max(self.sizes) - 1)
        tokens = spacing.spread(x)
        # Convolutions are linear layers over windows, B C size*D to B C filters.
        outputs = [
            convolution(centred_windows(tokens, size))
            for size, convolution in zip(self.sizes, self.convolutions, strict=True)
        ]
        return spacing.collect(torch.cat(outputs, dim=-1).relu())


class MultichannelEmbedding(Embedding):
    """Token embedding with two channels, trained and static vectors (Kim 2014, section 2.1).

    The same filters apply to both channels and their outputs are added, so the channels can be added first.
    """

    def __init__(self, vocab: int, config: TextCNNConfig) -> None:
        super().__init__(vocab, config)
        # A parameter, not a buffer, so that it is stored and initialised like the trained channel.
        self.static = nn.Parameter(self.weight.detach().clone(), requires_grad=False)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        return super().forward(tokens) + F.embedding(tokens, self.static) * self.scale


class TextCNN(Backbone[InputLayer]):
    """Backbone of a text CNN: one value per filter at each token; the pooling is the maximum over the text."""

    causal = False
    pooling = "max"

    def __init__(self, config: TextCNNConfig, embedding: InputLayer) -> None:
        if config.multichannel and isinstance(embedding, Embedding):
            embedding = MultichannelEmbedding(len(embedding.weight), config)
        super().__init__(config, embedding, TextCNNStack(config))
