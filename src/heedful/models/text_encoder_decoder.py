"""Base class of encoder-decoders over token ids, whatever their layers: embeddings, output, and matrices they share.

V vocabulary, D model.
"""

from abc import abstractmethod
from typing import Generic, TypeVar

from torch import nn

from heedful.config.schema import TextModelConfig
from heedful.models.initialization import initialise
from heedful.models.model import OUTPUT_ROWS, Names, SourceToTarget
from heedful.nn.embedding import Embedding

C = TypeVar("C", bound=TextModelConfig)


class TextEncoderDecoder(SourceToTarget, Generic[C]):
    """Base class of encoder-decoders that read and write token ids; a subclass adds the layers between its ends.

    Attributes:
        source_embedding: the embeddings of source tokens; with `tie = "all"` those of the target.
        target_embedding: the embeddings of target tokens.
        output: the projection to the target vocabulary; its matrix is the target's embeddings unless `tie = "none"`.
    """

    has_segments = False

    def __init__(self, config: C, source_vocab: int, target_vocab: int) -> None:
        super().__init__()
        self.source_embedding = Embedding(source_vocab, config)
        self.target_embedding = Embedding(target_vocab, config)
        self.add_layers(config)
        self.output = nn.Linear(config.d_model, target_vocab, bias=config.output_bias)
        initialise(self, config)
        if config.tie != "none":
            self.output.weight = self.target_embedding.weight
        if config.tie == "all":
            self.source_embedding = self.target_embedding

    @abstractmethod
    def add_layers(self, config: C) -> None:
        """Create the encoder and the decoder, from the settings of the subclass's own architecture."""

    def embedding_of(self, line: str) -> Embedding:
        """The embeddings of the source or of the target."""
        return {"src": self.source_embedding, "tgt": self.target_embedding}[line]

    def token_rows(self) -> Names:
        """Embeddings of both vocabularies, and the output."""
        return {"source_embedding.weight": "source", "target_embedding.weight": "target"} | OUTPUT_ROWS
