"""word2vec: a vector for each word, learned by predicting words from those around them (Mikolov et al. 2013a, b).

V vocabulary, D model.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.architectures.model import EmbeddingTable, Model, Names
from heedful.architectures.word2vec.settings import Word2VecConfig


class WordTable(nn.Module):
    """A vector for each word, at first random from -bound to bound; only the words of a batch have a gradient."""

    parameter_kind = "embeddings"

    def __init__(self, vocab: int, size: int, bound: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, size).uniform_(-bound, bound))

    def forward(self, words: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        # A batch has some thousand words of a vocabulary of perhaps a million: a dense gradient would be all zeros.
        return F.embedding(words, self.weight, sparse=True)


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
        # With the output at 0 all words begin equally likely, and the first updates move it, not the embeddings.
        self.embedding = WordTable(vocab, config.d_model, 0.5 / config.d_model)  # as in the authors' program
        self.output = WordTable(vocab, config.d_model, 0.0)

    def forward(self, words: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        return self.embedding(words)

    @property
    def line(self) -> str:
        return "src"

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        """The table of the word vectors; there is one kind of text."""
        return self.embedding if line == "src" else None

    def token_rows(self) -> Names:
        return {"embedding.weight": "source", "output.weight": "source"}
