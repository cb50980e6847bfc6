"""Base class of encoder-decoders that write token ids, whatever their layers: embeddings, output, shared matrices.

V vocabulary, D model.
"""

from abc import abstractmethod
from typing import Generic, TypeVar

from heedful.architectures.initialization import initialise
from heedful.architectures.model import OUTPUT_ROWS, Names, SourceToTarget
from heedful.config.schema import TextModelConfig
from heedful.nn.embedding import Embedding, InputLayer, OutputProjection

C = TypeVar("C", bound=TextModelConfig)


class TextEncoderDecoder(SourceToTarget, Generic[C]):
    """Base class of encoder-decoders that write token ids; a subclass adds the layers between its ends.

    Args:
        config: the settings of the model.
        source: the number of source tokens; or the input layer of another source, such as a picture.
        target_vocab: the number of target tokens.

    Attributes:
        source_embedding: the input layer of the source: embeddings, which with `tie = "all"` are those of the target.
        target_embedding: the embeddings of target tokens.
        output: the projection to the target vocabulary; its matrix is the target's embeddings unless `tie = "none"`.
    """

    has_segments = False

    def __init__(self, config: C, source: int | InputLayer, target_vocab: int) -> None:
        super().__init__()
        self.source_embedding = source if isinstance(source, InputLayer) else Embedding(source, config)
        self.target_embedding = Embedding(target_vocab, config)
        self.add_layers(config)
        self.output = OutputProjection(config.d_model, target_vocab, bias=config.output_bias)
        initialise(self, config)
        if config.tie != "none":
            self.output.weight = self.target_embedding.weight
        if config.tie == "all" and isinstance(self.source_embedding, Embedding):
            self.source_embedding = self.target_embedding

    @abstractmethod
    def add_layers(self, config: C) -> None:
        """Create the encoder and the decoder, from the settings of the subclass's own architecture."""

    def embedding_of(self, line: str) -> Embedding | None:
        """The embeddings of the source or of the target; None for a source that is no text."""
        found = {"src": self.source_embedding, "tgt": self.target_embedding}[line]
        return found if isinstance(found, Embedding) else None

    def token_rows(self) -> Names:
        """Embeddings of the vocabularies, and the output."""
        source = {"source_embedding.weight": "source"} if self.embedding_of("src") else {}
        return source | {"target_embedding.weight": "target"} | OUTPUT_ROWS
