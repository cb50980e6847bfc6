"""word2vec: a vector for each word, learned by predicting words from those around them (Mikolov et al. 2013a, b).

V vocabulary, D model.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config.word2vec import Word2VecConfig
from heedful.models.model import EmbeddingTable, Model, Names


class Word2Vec(Model):
    """Two vectors for each word: `embedding` has the word vectors, which predict; `output` has what is predicted.

    In skip-gram the embedding of a centre word predicts each word of its context, in CBOW the mean embedding of a
    context predicts the centre word. With hierarchical softmax the rows of `output` belong to the inner nodes of the
    Huffman tree instead of words.
    """

    predicts_tokens = False
    has_segments = False

    def __init__(self, config: Word2VecConfig, vocab: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, config.d_model, sparse=True)
        self.output = nn.Embedding(vocab, config.d_model, sparse=True)
        nn.init.uniform_(self.embedding.weight, -0.5 / config.d_model, 0.5 / config.d_model)  # as the authors' program
        nn.init.zeros_(self.output.weight)

    def forward(self, words: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        """Look up the vectors of words."""
        return self.embedding(words)

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        """The table of the word vectors; there is one kind of text."""
        return self.embedding if line == "src" else None

    def token_rows(self) -> Names:
        """Both tables have a row for each token of the vocabulary."""
        return {"embedding.weight": "source", "output.weight": "source"}
